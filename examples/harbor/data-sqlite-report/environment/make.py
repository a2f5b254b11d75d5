import sqlite3

with sqlite3.connect("/app/shop.db") as db:
    db.execute("create table items(id integer primary key, name text, price integer)")
    db.execute("create table sales(item_id integer, day text, count integer)")
    db.executemany(
        "insert into items values (?, ?, ?)",
        [(1, "pen", 120), (2, "ink", 900), (3, "pad", 350), (4, "cap", 800)],
    )
    sales = [
        (1, "2025-01-01", 10),
        (2, "2025-01-01", 1),
        (1, "2025-01-02", 5),
        (3, "2025-01-03", 4),
    ]
    db.executemany("insert into sales values (?, ?, ?)", sales)
