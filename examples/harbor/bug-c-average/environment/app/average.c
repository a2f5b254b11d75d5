#include <stdio.h>

int main(void) {
    int sum = 0, n = 0, x;
    while (scanf("%d", &x) == 1) {
        sum += x;
        n++;
    }
    printf("%.2f\n", (double)(sum / n));
    return 0;
}
