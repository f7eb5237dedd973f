/* SQLite: tables, an index, sorting, grouping and a recursive query; part of the text of the statements is marked. */
#include "driver.h"
#include <sqlite3.h>

static int shows(void *a, int count, char **values, char **names) {
    for (int i = 0; i < count; i++) printf("%s%s", i ? "|" : "", values[i] ? values[i] : "NULL");
    printf("\n");
    return 0;
}

static int once(void) {
    static char sql[] =
        "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);"
        "INSERT INTO t(b, c) VALUES('one', 1.5), ('two', 2.25), ('three', -3), (NULL, 4e10);"
        "CREATE INDEX i ON t(b); UPDATE t SET c = c * 2 WHERE b > 'o'; DELETE FROM t WHERE a = 2;"
        "SELECT a, b, c, length(b) FROM t ORDER BY b DESC;"
        "SELECT count(*), sum(a), group_concat(upper(b), '-') FROM t WHERE b LIKE 't%' OR a IN (1, 4);"
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 20) SELECT sum(x * x) FROM n;";
    mark(strstr(sql, "three"), 64);
    sqlite3 *db;
    char *error = 0;
    if (sqlite3_open(":memory:", &db)) return 1;
    if (sqlite3_exec(db, sql, shows, 0, &error)) return printf("%s\n", error), 2;
    return sqlite3_close(db);
}
