/* Process 1 of a session: starts commands, moves bytes and files, and ends process trees.
 *
 * Built once as a static binary, so any image with /bin/sh will do. It speaks frames over its
 * stdin and stdout (channel.py): length, type, job, payload, big-endian. Nothing in the session
 * can stop it: it is process 1, it is not dumpable, it has capabilities and groups that nothing
 * else has, and the seccomp profile spares it of the calls that would slow it down. When its
 * stdin ends, it exits and the kernel kills the rest.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OWN_GROUP 65520
#define REPORT_FD 9  /* where a shell says how a command ended */
#define CHUNK 65536
#define LARGEST_FRAME (16u << 20)
#define SECOND_CHANCE_MS 300 /* for a shell whose command was killed to go on */
#define DISK_TICK_MS 200     /* between looks at the file system, while commands run */
#define DISK_ANYWAY_MS 5000  /* others may free what a session fills */
#define MANY_FILES 50000
#define PASSES 64            /* over the process table before everything is killed */

enum { NO_STDIN = 1, SHELL = 2, AS_USER = 4 };

struct job {
    uint32_t id;
    pid_t keeper;             /* parent of every process of the job, and of its orphans */
    pid_t main;
    int in, out[3], status;   /* pipes; -1 once closed. out: stdout, stderr, a shell's report */
    int ended, end_input, timed_out, shell, relay, fetch, asked;
    uint64_t limit, kept[2], cut[2];
    int64_t deadline;         /* monotonic ms; 0: none */
    pid_t *known;             /* what ran before a shell's command began */
    size_t known_count;
    unsigned char *queue;     /* stdin that the command has not taken yet */
    size_t queued;
    struct job *next;
};

static struct job *jobs;
static void kill_tree(struct job *job, int new_only);
static void end_job(struct job *job);
static int oom_events = -1, listener = -1;
static long oom_kills;
static int64_t idle_ms, expires, last_use, next_look, last_told;
static uint64_t disk_limit, lowest_used, fewest_files;

/* -- small things ---------------------------------------------------------------------------- */

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static void put_u32(unsigned char *at, uint32_t v) {
    at[0] = v >> 24, at[1] = v >> 16, at[2] = v >> 8, at[3] = v;
}

static void put_u64(unsigned char *at, uint64_t v) { put_u32(at, v >> 32), put_u32(at + 4, v); }

static uint32_t get_u32(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
}

static int write_all(int fd, const void *data, size_t size) {
    for (const char *p = data; size;) {
        ssize_t n = write(fd, p, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return -1;
        p += n, size -= n;
    }
    return 0;
}

static int read_all(int fd, void *data, size_t size) {
    for (char *p = data; size;) {
        ssize_t n = read(fd, p, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return -1;
        p += n, size -= n;
    }
    return 0;
}

static void send_frame(char type, uint32_t id, const void *head, uint32_t head_size,
                       const void *data, uint32_t size) {
    static unsigned char buffer[CHUNK + 64];
    put_u32(buffer, 5 + head_size + size);
    buffer[4] = type;
    put_u32(buffer + 5, id);
    memcpy(buffer + 9, head, head_size);
    memcpy(buffer + 9 + head_size, data, size);
    if (write_all(1, buffer, 9 + head_size + size)) _exit(0); /* the host is gone */
}

static long count_oom_kills(void) {
    char text[512];
    ssize_t n = oom_events < 0 ? -1 : pread(oom_events, text, sizeof text - 1, 0);
    if (n <= 0) return 0;
    text[n] = 0;
    char *at = strstr(text, "oom_kill ");
    return at ? atol(at + 9) : 0;
}

static void close_fd(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* -- becoming another user ------------------------------------------------------------------- */

static void fail(int code, const char *what, const char *name) {
    dprintf(2, "session: %s %s: %s\n", what, name, strerror(errno));
    _exit(code);
}

/* Return the field of a line of /etc/passwd or /etc/group, cut in place. */
static char *field(char **rest) { return strsep(rest, ":\n"); }

static FILE *open_table(const char *path) {
    struct stat s;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &s) || !S_ISREG(s.st_mode)) return NULL;
    return fdopen(fd, "r");
}

static int number(const char *text, long *value) {
    char *end;
    *value = strtol(text, &end, 10);
    return *text && !*end && *value >= 0 && *value < 0xffffffffL;
}

struct identity {
    long uid, gid;
    gid_t groups[64];
    int count;
    const char *home;
};

/* Look up NAME, UID or UID:GID, as the image's /etc/passwd and /etc/group have them. */
static struct identity look_up(char *user) {
    struct identity who = {-1, -1, {0}, 0, "/"};
    char *name = NULL, *line = NULL, *wanted = strchr(user, ':');
    size_t size = 0;
    if (wanted) *wanted++ = 0;
    int numeric = number(user, &who.uid);
    if (!numeric) who.uid = -1;
    FILE *table = open_table("/etc/passwd");
    while (table && getline(&line, &size, table) > 0) {
        char *rest = line, *login = field(&rest);
        field(&rest);
        char *id = field(&rest), *group = field(&rest);
        field(&rest);
        char *folder = field(&rest);
        long found, main_group;
        if (!folder || !number(id, &found) || !number(group, &main_group)) continue;
        if (numeric ? found != who.uid : strcmp(login, user)) continue;
        who.uid = found, who.gid = main_group, name = strdup(login), who.home = strdup(folder);
        break;
    }
    if (table) fclose(table);
    if (who.uid < 0) errno = ENOENT, fail(126, "no user", user);
    if (who.gid < 0) who.gid = who.uid;
    if (wanted && !number(wanted, &who.gid)) errno = EINVAL, fail(126, "no group", wanted);
    table = name ? open_table("/etc/group") : NULL;
    while (table && getline(&line, &size, table) > 0) {
        char *rest = line;
        field(&rest), field(&rest);
        char *id = field(&rest), *members = field(&rest);
        long found;
        if (!members || !number(id, &found)) continue;
        for (char *m; (m = strsep(&members, ",")) && who.count < 64;)
            if (!strcmp(m, name)) who.groups[who.count++] = found;
    }
    if (table) fclose(table);
    return who;
}

/* What root of a session may do with its own files and processes. */
#define OF_ROOT                                                                              \
    (1u << CAP_CHOWN | 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER | 1u << CAP_FSETID |        \
     1u << CAP_KILL | 1u << CAP_SETGID | 1u << CAP_SETUID | 1u << CAP_NET_BIND_SERVICE)

static void become(const struct identity *who) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    for (int c = 0; c < 64; c++) /* at exec root gets what is in the bounding set */
        if (c > 31 || !(OF_ROOT >> c & 1)) prctl(PR_CAPBSET_DROP, c);
    if (setgroups(who->count, who->groups) || setresgid(who->gid, who->gid, who->gid) ||
        setresuid(who->uid, who->uid, who->uid))
        fail(126, "cannot become", "the user");
    if (syscall(SYS_capget, &header, data)) fail(126, "cannot read", "capabilities");
    data[0].permitted &= who->uid ? 0 : OF_ROOT;
    data[0].effective = data[0].permitted;
    data[0].inheritable = data[1].permitted = data[1].effective = data[1].inheritable = 0;
    if (syscall(SYS_capset, &header, data)) fail(126, "cannot drop", "capabilities");
}

/* -- files ----------------------------------------------------------------------------------- */

static void file_error(const char *path) {
    int code = errno;
    dprintf(2, "%s: %s", path, strerror(code));
    _exit(code > 0 && code < 126 ? code : EIO);
}

/* Open the folder that holds the last part of a path, which follows no link. */
static int open_parent(int from, char *path, char **last, int make) {
    int folder = *path == '/' ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : dup(from);
    char *part, *rest = path;
    *last = NULL;
    while ((part = strsep(&rest, "/"))) {
        if (!*part || !strcmp(part, ".")) continue;
        if (!strcmp(part, "..")) errno = EINVAL, file_error("..");
        if (*last) {
            if (make && mkdirat(folder, *last, 0755) && errno != EEXIST) file_error(*last);
            int inner = openat(folder, *last, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
            struct stat s;
            if (inner < 0) {
                if (errno == ENOTDIR && !fstatat(folder, *last, &s, AT_SYMLINK_NOFOLLOW) &&
                    S_ISLNK(s.st_mode))
                    errno = ELOOP;
                file_error(*last);
            }
            close(folder);
            folder = inner;
        }
        *last = part;
    }
    return folder;
}

static uint32_t read_u32(void) {
    unsigned char raw[4];
    if (read_all(0, raw, 4)) _exit(EPIPE);
    return get_u32(raw);
}

/* Write the entries that come in: type, mode, name and, of files, chunks. Nothing is written
 * through what lies there: a file appears under a new name and replaces the old one. */
static void receive_files(char *base, const struct identity *owner) {
    static char name[PATH_MAX], data[CHUNK];
    char *last, type;
    int top = -1;
    while (!read_all(0, &type, 1) && type != 'e') {
        uint32_t mode = read_u32() & 07777, size = read_u32();
        if (size >= sizeof name) errno = ENAMETOOLONG, file_error("name");
        if (read_all(0, name, size)) _exit(EPIPE);
        name[size] = 0;
        char *path = size ? name : strdup(base);
        if (size && *name == '/') errno = EINVAL, file_error(name);
        int folder = open_parent(top, path, &last, 1);
        if (type == 'd') {
            if (last && mkdirat(folder, last, 0755) && errno != EEXIST) file_error(last);
            int made = last ? openat(folder, last, O_RDONLY | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC)
                            : openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            if (made < 0) file_error(last ? last : "/");
            if (size && (fchown(made, owner->uid, owner->gid) || fchmod(made, mode)))
                file_error(last);
            if (size) close(made);
            else top = made;
        } else {
            char fresh[64];
            if (!last) errno = EISDIR, file_error("/");
            snprintf(fresh, sizeof fresh, ".session-%d-%lld", getpid(), (long long)now_ms());
            int file = openat(folder, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
            if (file < 0) file_error(last);
            for (uint32_t n; (n = read_u32());) {
                if (n > sizeof data || read_all(0, data, n)) _exit(EPIPE);
                if (write_all(file, data, n)) {
                    int code = errno;
                    unlinkat(folder, fresh, 0);
                    errno = code, file_error(last);
                }
            }
            if (fchown(file, owner->uid, owner->gid) || fchmod(file, mode) ||
                renameat(folder, fresh, folder, last)) {
                int code = errno;
                unlinkat(folder, fresh, 0);
                errno = code, file_error(last);
            }
            close(file);
        }
        close(folder);
    }
    _exit(0);
}

static void send_entry(char type, uint32_t mode, const char *name) {
    unsigned char head[9];
    head[0] = type;
    put_u32(head + 1, mode & 07777);
    put_u32(head + 5, strlen(name));
    write_all(1, head, 9), write_all(1, name, strlen(name));
}

static void send_file(int file) {
    static unsigned char data[4 + CHUNK];
    for (ssize_t n; (n = read(file, data + 4, CHUNK)) > 0;)
        put_u32(data, n), write_all(1, data, 4 + n);
    put_u32(data, 0);
    write_all(1, data, 4);
}

/* Send what a folder holds. Links and special files are named only. */
static void send_folder(int folder, const char *under, int depth) {
    DIR *dir = fdopendir(folder);
    struct stat s;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char *name;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        if (asprintf(&name, "%s%s", under, e->d_name) < 0) _exit(ENOMEM);
        int file = openat(folder, e->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (file < 0 || fstat(file, &s) || strlen(name) >= PATH_MAX - 1 || depth > 100 ||
            !(S_ISREG(s.st_mode) || S_ISDIR(s.st_mode))) {
            send_entry('s', 0, name);
        } else if (S_ISDIR(s.st_mode)) {
            char *inner;
            send_entry('d', s.st_mode, name);
            if (asprintf(&inner, "%s/", name) < 0) _exit(ENOMEM);
            send_folder(file, inner, depth + 1);
            free(inner), file = -1;
        } else {
            send_entry('f', s.st_mode, name);
            send_file(file);
        }
        close_fd(&file), free(name);
    }
    if (dir) closedir(dir);
}

static void send_files(char *path, int whole_folder) {
    char *last, *given = strdup(path);
    struct stat s;
    int folder = open_parent(-1, path, &last, 0);
    /* A FIFO would be waited for, and a device could give bytes for ever. */
    int file = openat(folder, last ? last : ".", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0 || fstat(file, &s)) file_error(given);
    if (whole_folder ? !S_ISDIR(s.st_mode) : !S_ISREG(s.st_mode)) {
        errno = whole_folder ? ENOTDIR : S_ISDIR(s.st_mode) ? EISDIR : EINVAL;
        file_error(given);
    }
    if (whole_folder) send_folder(file, "", 0);
    else send_entry('f', s.st_mode, ""), send_file(file);
    send_entry('e', 0, "");
    _exit(0);
}

/* -- the network ----------------------------------------------------------------------------- */

static int listen_at(int port) {
    struct sockaddr_in at = {AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}, {0}};
    int yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 128)) _exit(5);
    return fd;
}

/* Move bytes one way. Return 0 at the end. */
static int move(int from, int to) {
    static char data[CHUNK];
    ssize_t n = read(from, data, sizeof data);
    return n > 0 && !write_all(to, data, n);
}

/* Take one connection, and be what lies between it and our stdin and stdout. */
static void relay(int port) {
    int s = accept4(port, NULL, NULL, SOCK_CLOEXEC);
    if (s < 0) _exit(1);
    close(port);
    struct pollfd polls[2] = {{0, POLLIN, 0}, {s, POLLIN, 0}};
    while (polls[0].fd >= 0 || polls[1].fd >= 0) {
        if (poll(polls, 2, -1) < 0) continue;
        if (polls[0].revents && !move(0, s)) polls[0].fd = -1, shutdown(s, SHUT_WR);
        if (polls[1].revents && !move(s, 1)) break;
    }
    _exit(0);
}

/* -- jobs ------------------------------------------------------------------------------------ */

struct work {
    char kind, *user, *cwd, **argv, **env;
    int flags;
    uint64_t largest_file;
};

static void set_oom_score(const char *score) {
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) write_all(fd, score, strlen(score)), close(fd);
}

static void run(struct work *work, int in, int out[3]) {
    struct rlimit size = {work->largest_file, work->largest_file};
    sigset_t none;
    setsid();
    set_oom_score("300"); /* by one who may: nobody in here can lower it again */
    setpriority(PRIO_PROCESS, 0, 0);
    setrlimit(RLIMIT_FSIZE, &size);
    int null = in < 0 ? open("/dev/null", O_RDONLY) : in;
    if (dup2(null, 0) < 0 || dup2(out[0], 1) < 0 || dup2(out[1], 2) < 0) _exit(126);
    int report = work->flags & SHELL  ? dup2(out[2], REPORT_FD)
                 : work->kind == 'n' ? dup2(listener, REPORT_FD)
                                     : -1;
    if (report >= 0) fcntl(report, F_SETFD, 0);
    for (int fd = 3; fd < REPORT_FD; fd++) close(fd);
    syscall(SYS_close_range, report < 0 ? REPORT_FD : REPORT_FD + 1, ~0U, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    umask(022);
    struct identity who = look_up(work->user), root = {0, 0, {0}, 0, "/"};
    become(work->kind == 'p' && !(work->flags & AS_USER) ? &root : &who);
    if (work->kind == 'p') receive_files(work->argv[0], &who);
    if (work->kind == 'n') relay(REPORT_FD);
    if (work->kind == 'g') send_files(work->argv[0], 0);
    if (work->kind == 'G') send_files(work->argv[0], 1);
    if (chdir(work->cwd)) fail(126, "cannot enter", work->cwd);
    environ = work->env;
    setenv("HOME", who.home, 0);
    execvp(work->argv[0], work->argv);
    fail(errno == ENOENT ? 127 : 126, "cannot run", work->argv[0]);
}

/* Wait for the command, tell its end, and stay for its orphans: so a tree can be found whole. */
static void keep(struct work *work, int in, int out[3], int status) {
    struct { pid_t pid; int status; } end = {0};
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    end.pid = fork();
    if (!end.pid) run(work, in, out);
    status = dup2(status, 3); /* of pipes that others read to their end it must hold nothing else */
    for (int fd = 0; fd < 3; fd++) close(fd);
    syscall(SYS_close_range, 4, ~0U, 0);
    write_all(status, &end, sizeof end);
    if (end.pid < 0) _exit(1);
    for (int s, p; (p = waitpid(-1, &s, 0)) > 0 || errno == EINTR;)
        if (p == end.pid) {
            end.status = s;
            write_all(status, &end, sizeof end);
            close(status);
        }
    _exit(0);
}

static void report_end(struct job *job, char how, int code) {
    unsigned char head[22];
    long kills = count_oom_kills();
    head[0] = how;
    head[1] = code;
    head[2] = job->timed_out;
    head[3] = kills > oom_kills;
    oom_kills = kills;
    put_u64(head + 4, job->cut[0]);
    put_u64(head + 12, job->cut[1]);
    send_frame('E', job->id, head, 20, NULL, 0);
    job->ended = 1;
    job->deadline = 0;
    close_fd(&job->in);
    close_fd(&job->status);
    close_fd(&job->out[2]);
    free(job->queue), job->queue = NULL, job->queued = 0;
}

/* Read what lies in a pipe: send on what the limit allows, count the rest. */
static void take_output(struct job *job, int which, size_t most) {
    static unsigned char data[CHUNK];
    while (most && job->out[which] >= 0) {
        ssize_t n = read(job->out[which], data, most < CHUNK ? most : CHUNK);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n <= 0) {
            close_fd(&job->out[which]);
            return;
        }
        most -= n;
        if (job->ended) continue; /* a server that was left behind: nobody reads it any more */
        uint64_t room = job->limit - job->kept[which];
        size_t kept = (uint64_t)n < room ? (size_t)n : room;
        unsigned char stream = which;
        if (kept) send_frame('O', job->id, &stream, 1, data, kept);
        job->kept[which] += kept;
        job->cut[which] += n - kept;
        if (job->fetch && !which && job->cut[0]) { /* nobody wants the rest, which may be endless */
            close_fd(&job->out[0]);
            end_job(job);
        }
    }
}

/* Read all that was written before now, and no more: somebody may write for ever. */
static void take_rest(struct job *job) {
    for (int which = 0; which < 2; which++) {
        int size = 0;
        if (job->out[which] >= 0 && !ioctl(job->out[which], FIONREAD, &size))
            take_output(job, which, size);
    }
}

static void take_report(struct job *job) {
    unsigned char data[256], head[17];
    ssize_t n = read(job->out[2], data, sizeof data);
    if (n <= 0) {
        if (n == 0) close_fd(&job->out[2]);
        return;
    }
    /* The shell writes one short line for each command; programs may write anything, for ever. */
    unsigned char *end = memrchr(data, '\n', n);
    if (!job->asked || !end) return;
    job->asked = 0;
    size_t length = end + 1 - data, size = length < 4 ? length : 4;
    take_rest(job);
    head[0] = job->timed_out;
    put_u64(head + 1, job->cut[0]);
    put_u64(head + 9, job->cut[1]);
    send_frame('S', job->id, head, 17, data + length - size, size);
    job->deadline = 0;
}

static void take_status(struct job *job) {
    struct { pid_t pid; int status; } end;
    ssize_t n = read(job->status, &end, sizeof end);
    if (n < 0 && errno == EAGAIN) return;
    if (n == sizeof end && end.pid > 0 && !job->main) {
        job->main = end.pid;
        return;
    }
    take_rest(job);
    if (n == sizeof end && end.pid < 0) report_end(job, 'f', 0);
    else if (n != sizeof end) kill_tree(job, 0), report_end(job, 's', SIGKILL); /* no keeper */
    else if (WIFSIGNALED(end.status)) report_end(job, 's', WTERMSIG(end.status));
    else report_end(job, 'x', WEXITSTATUS(end.status));
}

static void give_input(struct job *job) {
    unsigned char head[4];
    ssize_t n = job->queued ? write(job->in, job->queue, job->queued) : 0;
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n < 0) n = job->queued, job->end_input = 1; /* it closed its stdin */
    if (n) {
        memmove(job->queue, job->queue + n, job->queued - n);
        job->queued -= n;
        put_u32(head, n);
        send_frame('W', job->id, head, 4, NULL, 0);
    }
    if (!job->queued && job->end_input) close_fd(&job->in);
}

/* -- process trees --------------------------------------------------------------------------- */

struct process { pid_t pid, parent; char state; int mine; };

static size_t list_processes(struct process **found) {
    static struct process *all;
    static size_t room;
    size_t count = 0;
    DIR *dir = opendir("/proc");
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char path[64], text[1024], *at;
        if (e->d_name[0] < '0' || e->d_name[0] > '9') continue;
        snprintf(path, sizeof path, "/proc/%.20s/stat", e->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        close_fd(&fd);
        if (n <= 0) continue;
        text[n] = 0;
        if (!(at = strrchr(text, ')'))) continue;
        if (count == room && !(all = realloc(all, (room = 2 * room + 64) * sizeof *all))) _exit(1);
        struct process *p = &all[count];
        p->pid = atoi(e->d_name), p->mine = 0;
        if (sscanf(at + 1, " %c %d", &p->state, &p->parent) == 2) count++;
    }
    if (dir) closedir(dir);
    *found = all;
    return count;
}

static int is_keeper(pid_t pid) {
    for (struct job *j = jobs; j; j = j->next)
        if (j->keeper == pid) return 1;
    return 0;
}

/* Mark what descends from a keeper, and what descends from us without one: a killed keeper's. */
static void mark(struct process *all, size_t count, pid_t keeper) {
    for (int more = 1; more;) {
        more = 0;
        for (size_t i = 0; i < count; i++) {
            if (all[i].mine || all[i].pid == keeper || all[i].pid == 1) continue;
            int orphan = all[i].parent == 1 && !is_keeper(all[i].pid);
            for (size_t k = 0; k < count && !orphan && all[i].parent != keeper; k++)
                if (all[k].mine && all[k].pid == all[i].parent) orphan = 1;
            if (orphan || all[i].parent == keeper) all[i].mine = more = 1;
        }
    }
}

static void reap(void) {
    for (int status; waitpid(-1, &status, WNOHANG) > 0;);
}

static void kill_all(void) {
    kill(-1, SIGKILL);
    int64_t deadline = now_ms() + 10000;
    while (waitpid(-1, NULL, WNOHANG) >= 0 && now_ms() < deadline) usleep(500);
}

static int is_known(const struct job *job, pid_t pid) {
    for (size_t i = 0; i < job->known_count; i++)
        if (job->known[i] == pid) return 1;
    return 0;
}

/* Kill a job's processes, or those only that its shell's command has started.
 * They are stopped first, so that none makes another while the table is read. */
static void kill_tree(struct job *job, int new_only) {
    struct process *all;
    for (int pass = 0; pass < PASSES; pass++) {
        size_t count = list_processes(&all), awake = 0;
        mark(all, count, job->keeper);
        for (size_t i = 0; i < count; i++) {
            if (!all[i].mine || strchr("ZX", all[i].state)) continue;
            if (new_only && is_known(job, all[i].pid)) continue;
            all[i].mine = 2;
            if (!strchr("Tt", all[i].state)) awake++, kill(all[i].pid, SIGSTOP);
        }
        if (!awake || pass == 8) { /* one that something keeps waking is killed as it is */
            for (size_t i = 0; i < count; i++)
                if (all[i].mine == 2) kill(all[i].pid, SIGKILL);
            if (!awake) return;
        }
        usleep(200);
        reap();
    }
    kill_all();
}

/* Kill a job's processes and its keeper, which somebody may have stopped: its end is the job's. */
static void end_job(struct job *job) {
    kill_tree(job, 0);
    if (job->keeper > 0 && job->status >= 0) kill(job->keeper, SIGKILL);
}

/* -- what the host asks for ------------------------------------------------------------------ */

struct reader { unsigned char *at, *end; };

static uint64_t next_number(struct reader *r, int size) {
    uint64_t value = 0;
    if (r->end - r->at < size) _exit(2);
    while (size--) value = value << 8 | *r->at++;
    return value;
}

static char *next_text(struct reader *r) {
    uint32_t size = next_number(r, 4);
    if (r->end - r->at < size) _exit(2);
    char *text = strndup((char *)r->at, size);
    r->at += size;
    return text;
}

static char **next_list(struct reader *r) {
    uint32_t count = next_number(r, 4);
    if (r->end - r->at < 4 * (int64_t)count) _exit(2);
    char **list = calloc(count + 1, sizeof *list);
    for (uint32_t i = 0; i < count; i++) list[i] = next_text(r);
    return list;
}

static void free_list(char **list) {
    for (char **item = list; *item; item++) free(*item);
    free(list);
}

static void start_job(uint32_t id, struct reader *r) {
    struct work work;
    int pipes[5][2], ok = 1; /* stdin, stdout, stderr, report, status */
    struct job *job = calloc(1, sizeof *job);
    work.kind = next_number(r, 1);
    work.flags = next_number(r, 1);
    uint32_t timeout = next_number(r, 4);
    job->limit = next_number(r, 8);
    work.largest_file = next_number(r, 8);
    work.user = next_text(r), work.cwd = next_text(r);
    work.argv = next_list(r), work.env = next_list(r);
    for (int i = 0; i < 5; i++) {
        pipes[i][0] = pipes[i][1] = -1;
        if ((i == 0 && work.flags & NO_STDIN) || (i == 3 && !(work.flags & SHELL))) continue;
        ok = ok && !pipe2(pipes[i], O_CLOEXEC);
    }
    job->id = id, job->shell = !!(work.flags & SHELL), job->relay = work.kind == 'n';
    job->fetch = work.kind == 'g' || work.kind == 'G';
    job->next = jobs, jobs = job;
    int theirs[3] = {pipes[1][1], pipes[2][1], pipes[3][1]};
    job->keeper = ok ? fork() : -1;
    if (!job->keeper) {
        int in = pipes[0][0];
        keep(&work, in, theirs, pipes[4][1]);
    }
    close_fd(&pipes[0][0]);
    for (int i = 1; i < 5; i++) close_fd(&pipes[i][1]);
    job->in = pipes[0][1], job->status = pipes[4][0];
    for (int i = 0; i < 3; i++) job->out[i] = pipes[i + 1][0];
    int ours[] = {job->in, job->out[0], job->out[1], job->out[2], job->status};
    for (int i = 0; i < 5; i++)
        if (ours[i] >= 0) fcntl(ours[i], F_SETFL, O_NONBLOCK);
    if (timeout && !job->shell) job->deadline = now_ms() + timeout;
    if (job->keeper < 0) report_end(job, 'f', 0);
    free(work.user), free(work.cwd), free_list(work.argv), free_list(work.env);
}

static void handle(unsigned char type, uint32_t id, unsigned char *data, uint32_t size) {
    struct reader r = {data, data + size};
    struct job *job = jobs;
    last_use = now_ms();
    while (job && (job->id != id || job->ended)) job = job->next;
    if (type == 'C') {
        idle_ms = next_number(&r, 4);
        uint32_t total = next_number(&r, 4);
        expires = total ? now_ms() + total : 0;
        disk_limit = next_number(&r, 8);
        lowest_used = fewest_files = UINT64_MAX, last_told = now_ms();
        int port = next_number(&r, 2);
        if (port) listener = listen_at(port);
    } else if (type == 'J') {
        start_job(id, &r);
    } else if (type == 'A') {
        kill_all();
        for (job = jobs; job; job = job->next)
            if (!job->ended) take_rest(job), report_end(job, 's', SIGKILL);
        unsigned char left[4];
        struct process *all;
        put_u32(left, list_processes(&all) - 1);
        send_frame('A', id, left, 4, NULL, 0);
    } else if (job && type == 'I') {
        if (!size) job->end_input = 1;
        else if (job->in < 0) { /* it is closed: say that it was taken */
            unsigned char head[4];
            put_u32(head, size);
            send_frame('W', id, head, 4, NULL, 0);
        } else {
            job->queue = realloc(job->queue, job->queued + size);
            if (!job->queue) _exit(1);
            memcpy(job->queue + job->queued, data, size);
            job->queued += size;
        }
        if (job->in >= 0) give_input(job);
    } else if (job && type == 'R') { /* a shell's next command */
        uint32_t timeout = next_number(&r, 4);
        job->kept[0] = job->kept[1] = job->cut[0] = job->cut[1] = 0;
        struct process *all;
        job->timed_out = 0, job->asked = 1, job->known_count = list_processes(&all);
        job->known = realloc(job->known, (job->known_count + 1) * sizeof *job->known);
        if (!job->known) _exit(1);
        for (size_t i = 0; i < job->known_count; i++) job->known[i] = all[i].pid;
        job->deadline = timeout ? now_ms() + timeout : 0;
    } else if (job && type == 'K') {
        end_job(job);
    }
}

static void take_request(void) {
    static unsigned char *data, head[9];
    static size_t room;
    if (read_all(0, head, 9)) _exit(0); /* the host is gone */
    uint32_t size = get_u32(head) - 5;
    if (size > LARGEST_FRAME) _exit(2);
    if (size > room && !(data = realloc(data, room = size))) _exit(1);
    if (read_all(0, data, size)) _exit(0);
    handle(head[4], get_u32(head + 5), data, size);
}

static void end_late_jobs(void) {
    int64_t now = now_ms();
    for (struct job *job = jobs; job; job = job->next) {
        if (!job->deadline || now < job->deadline) continue;
        if (job->shell && !job->timed_out) {
            kill_tree(job, 1);
            job->deadline = now_ms() + SECOND_CHANCE_MS;
        } else {
            end_job(job);
            job->deadline = 0;
        }
        job->timed_out = 1;
    }
}

static void expire(const char *why) {
    send_frame('X', 0, why, strlen(why), NULL, 0);
    kill_all();
    _exit(3);
}

/* Have the host measure what the session has written, if the disk may be fuller by it. */
static void look_at_disk(int64_t now) {
    struct statvfs s;
    next_look = now + DISK_TICK_MS;
    if (statvfs("/", &s)) return;
    uint64_t used = (uint64_t)(s.f_blocks - s.f_bfree) * s.f_frsize, files = s.f_files - s.f_ffree;
    if (used < lowest_used) lowest_used = used;
    if (files < fewest_files) fewest_files = files;
    if (used - lowest_used < disk_limit / 8 && files - fewest_files < MANY_FILES / 4 &&
        now < last_told + DISK_ANYWAY_MS)
        return;
    lowest_used = used, fewest_files = files, last_told = now;
    send_frame('D', 0, NULL, 0, NULL, 0);
}

static int next_timeout(void) {
    int64_t next = expires, busy = 0, now = now_ms();
    for (struct job *job = jobs; job; job = job->next) {
        busy |= !job->ended && !job->relay;
        if (job->deadline && (!next || job->deadline < next)) next = job->deadline;
    }
    if (expires && now >= expires) expire("wall");
    if (busy) last_use = now;
    if (busy && disk_limit) {
        if (now >= next_look) look_at_disk(now);
        if (!next || next_look < next) next = next_look;
    }
    if (idle_ms && now >= last_use + idle_ms) expire("idle");
    if (idle_ms && (!next || last_use + idle_ms < next)) next = last_use + idle_ms;
    if (!next) return -1;
    return next <= now ? 0 : next - now > INT_MAX / 2 ? INT_MAX / 2 : (int)(next - now);
}

static void forget_old_jobs(void) {
    for (struct job **at = &jobs; *at;) {
        struct job *job = *at;
        if (job->ended && job->out[0] < 0 && job->out[1] < 0 &&
            (job->keeper <= 0 || kill(job->keeper, 0))) {
            *at = job->next;
            free(job->known), free(job);
        } else at = &job->next;
    }
}

static void protect(void) {
    struct rlimit files = {65536, 65536};
    setpriority(PRIO_PROCESS, 0, -15);
    set_oom_score("-999");
    setrlimit(RLIMIT_NOFILE, &files);
    /* Another's limits may be set by who has its user and all of its groups: these two differ. */
    if (setgroups(0, NULL) || setresgid(OWN_GROUP, OWN_GROUP + 1, OWN_GROUP) ||
        prctl(PR_SET_DUMPABLE, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        fail(4, "cannot protect", "process 1");
}

int main(void) {
    sigset_t set;
    if (getpid() != 1) return 4; /* it kills everything that it may signal */
    protect();
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    int children = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    oom_events = open("/sys/fs/cgroup/memory/memory.oom_control", O_RDONLY | O_CLOEXEC);
    if (oom_events < 0) oom_events = open("/sys/fs/cgroup/memory.events", O_RDONLY | O_CLOEXEC);
    oom_kills = count_oom_kills();
    last_use = now_ms();
    send_frame('H', 0, NULL, 0, NULL, 0);
    for (;;) {
        size_t count = 2, room = 2;
        for (struct job *job = jobs; job; job = job->next) room += 5;
        struct pollfd polls[room], *p;
        polls[0] = (struct pollfd){0, POLLIN, 0};
        polls[1] = (struct pollfd){children, POLLIN, 0};
        for (struct job *job = jobs; job; job = job->next) {
            int fds[] = {job->out[0], job->out[1], job->out[2], job->status, job->in};
            for (int i = 0; i < 5; i++)
                polls[count++] = (struct pollfd){
                    i == 4 && !job->queued ? -1 : fds[i], i == 4 ? POLLOUT : POLLIN, 0};
        }
        if (poll(polls, count, next_timeout()) < 0 && errno != EINTR) _exit(1);
        struct signalfd_siginfo ignored;
        while (read(children, &ignored, sizeof ignored) > 0);
        p = polls + 2;
        for (struct job *job = jobs; job; job = job->next, p += 5) {
            for (int i = 0; i < 2; i++)
                if (p[i].revents) take_output(job, i, CHUNK);
            if (p[2].revents && job->out[2] >= 0) take_report(job);
            if (p[3].revents && job->status >= 0) take_status(job);
            if (p[4].revents && job->in >= 0) give_input(job);
        }
        end_late_jobs();
        reap();
        forget_old_jobs();
        if (polls[0].revents) take_request(); /* last: it changes the list of jobs */
    }
}
