/* What a cluster is and what it costs. */
#include "common/app/settings.h"
#include "common/base/cleanup.h"
#include "common/clock/os/clock_os.h"
#include "tests/bench/cluster_internal.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* ---- the database --------------------------------------------------- */

struct dsn {
    char user[64], host[128], db[64], socket[256];
    unsigned port;
};

/* mysql://user@host:port/db or mysql://user@/db?socket=PATH */
static bool
parse_url(const char *url, struct dsn *dsn)
{
    static const char prefix[] = "mysql://";
    struct toc_str rest = toc_str_of(url), part, host;
    int64_t port = 3306;

    memset(dsn, 0, sizeof *dsn);
    if (!toc_str_starts(rest, TOC_STR("mysql://")))
        return false;
    rest.ptr += sizeof prefix - 1;
    rest.len -= sizeof prefix - 1;
    if (!toc_str_next(&rest, '@', &part))
        return false;
    toc_copy(dsn->user, sizeof dsn->user, part);
    if (!toc_str_next(&rest, '/', &part))
        return false;
    if (toc_str_next(&part, ':', &host))
        toc_copy(dsn->host, sizeof dsn->host, host);
    if (part.len > 0 && !toc_parse_i64(part, 1, 65535, &port))
        return false;
    dsn->port = (unsigned)port;
    if (!toc_str_next(&rest, '?', &part))
        return false;
    toc_copy(dsn->db, sizeof dsn->db, part);
    if (toc_str_next(&rest, '=', &part) && toc_str_eq(part, TOC_STR("socket")))
        toc_copy(dsn->socket, sizeof dsn->socket, rest);
    return true;
}

enum toc_status
sql_connect(struct cluster *cluster, struct toc_error *reterr)
{
    char password[TOC_PASSWORD_MAX + 1] = "";
    enum toc_status st = TOC_OK;
    struct dsn dsn;

    if (!parse_url(cluster->mysql_url, &dsn))
        return toc_error_set(reterr, TOC_INVALID, "bench", 0,
                             "not understood: %s", cluster->mysql_url);
    if (cluster->password_file != NULL)
        st = toc_password_read(cluster->password_file, password,
                               sizeof password, reterr);
    if (st != TOC_OK)
        return st;
    cluster->sql = mysql_init(NULL);
    if (mysql_real_connect(cluster->sql, dsn.host[0] ? dsn.host : NULL,
                           dsn.user, password, dsn.db, dsn.port,
                           dsn.socket[0] ? dsn.socket : NULL, 0) == NULL)
        return toc_error_set(reterr, TOC_UNAVAILABLE, "mysql",
                             (int)mysql_errno(cluster->sql), "%s",
                             mysql_error(cluster->sql));
    return TOC_OK;
}

static MYSQL_RES *
query(struct cluster *cluster, const char *statement)
{
    if (mysql_query(cluster->sql, statement) != 0)
        return NULL;
    return mysql_store_result(cluster->sql);
}

void
sql_text(struct cluster *cluster, const char *statement, unsigned column,
         char *ret_text, size_t cap)
{
    MYSQL_RES *result = query(cluster, statement);
    MYSQL_ROW row = result != NULL ? mysql_fetch_row(result) : NULL;

    toc_copy(ret_text, cap,
             row != NULL && row[column] != NULL ? toc_str_of(row[column])
                                                : TOC_STR("?"));
    if (result != NULL)
        mysql_free_result(result);
}

static void
read_counters(struct cluster *cluster, struct cost *cost)
{
    const struct {
        const char *name;
        uint64_t *into;
    } rows[] = {
        {"Questions", &cost->questions},
        {"Com_select", &cost->selects},
        {"Com_insert", &cost->inserts},
        {"Com_update", &cost->updates},
        {"Com_delete", &cost->deletes},
        {"Com_commit", &cost->commits},
        {"Handler_read_key", &cost->rows_read},
        {"Handler_read_next", &cost->rows_read},
        {"Handler_read_rnd_next", &cost->rows_read},
    };
    MYSQL_RES *result = query(cluster, "SHOW GLOBAL STATUS");
    MYSQL_ROW row;
    int64_t value;

    while (result != NULL && (row = mysql_fetch_row(result)) != NULL)
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
            if (strcmp(row[0], rows[i].name) == 0 &&
                toc_parse_i64(toc_str_of(row[1]), 0, INT64_MAX, &value))
                *rows[i].into += (uint64_t)value;
    if (result != NULL)
        mysql_free_result(result);
}

/* ---- processes ------------------------------------------------------ */

/* proc(5): field 14 is utime, 15 stime, both in ticks; 24 rss in pages. */
static bool
read_process(long pid, struct process_cost *cost)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf text = {0};
    struct toc_str rest, field;
    int64_t ticks = 0, value;
    const char *name_end;
    char path[64];

    toc_format(path, sizeof path, "/proc/%ld/stat", pid);
    if (!read_file(path, &text) || text.len == 0)
        return false;
    name_end = strrchr(text.data, ')');
    if (name_end == NULL)
        return false;
    rest = toc_str_of(name_end + 2);
    for (int at = 3; at <= 24 && toc_str_next(&rest, ' ', &field); at++) {
        if (!toc_parse_i64(field, INT64_MIN, INT64_MAX, &value))
            continue;
        if (at == 14 || at == 15)
            ticks += value;
        if (at == 24)
            cost->rss_kib = (uint64_t)(value * sysconf(_SC_PAGESIZE) / 1024);
    }
    cost->pid = pid;
    cost->cpu_s = (double)ticks / (double)sysconf(_SC_CLK_TCK);
    return true;
}

static void
add_process(struct cost *cost, const char *name, long pid)
{
    struct process_cost *process = &cost->processes[cost->n];

    if (pid == 0 || cost->n == CLUSTER_PROCESSES_MAX ||
        !read_process(pid, process))
        return;
    toc_copy(process->name, sizeof process->name, toc_str_of(name));
    cost->n++;
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(((const struct process_cost *)a)->name,
                  ((const struct process_cost *)b)->name);
}

void
cluster_cost(struct cluster *cluster, struct cost *ret_cost)
{
    char path[400];
    struct dirent *file;
    DIR *dir;

    memset(ret_cost, 0, sizeof *ret_cost);
    toc_format(path, sizeof path, "%s/run", cluster->home);
    dir = opendir(path);
    while (dir != NULL && (file = readdir(dir)) != NULL) {
        struct toc_str rest = toc_str_of(file->d_name), stem;
        char name[32];
        if (!toc_str_next(&rest, '.', &stem) ||
            !toc_str_eq(rest, TOC_STR("pid")))
            continue;
        toc_copy(name, sizeof name, stem);
        add_process(ret_cost, name, process_pid(cluster, name));
    }
    if (dir != NULL)
        closedir(dir);
    qsort(ret_cost->processes, ret_cost->n, sizeof ret_cost->processes[0],
          compare_names);
    add_process(ret_cost, "bench", (long)getpid());
    ret_cost->at_ns = toc_clock_mono(toc_clock_os()).ns;
    read_counters(cluster, ret_cost);
}

/* Since `before`, or since its start when it was started later. */
static double
cpu_since(const struct cost *before, const struct process_cost *process)
{
    for (size_t i = 0; i < before->n; i++)
        if (before->processes[i].pid == process->pid)
            return process->cpu_s - before->processes[i].cpu_s;
    return process->cpu_s;
}

static const char *
key_of(char key[64], const char *prefix, const char *name)
{
    toc_format(key, 64, "%s%s", prefix, name);
    return key;
}

void
cluster_report_cost(struct report *report, const struct cost *before,
                    const struct cost *after, uint64_t tasks)
{
    double per = tasks > 0 ? 1.0 / (double)tasks : 0, total = 0;
    char key[64];

    report_number(report, "statements_per_task", "SQL statements per task",
                  (double)(after->questions - before->questions) * per, 4);
    report_number(report, "selects_per_task", "  selects",
                  (double)(after->selects - before->selects) * per, 4);
    report_number(report, "inserts_per_task", "  inserts",
                  (double)(after->inserts - before->inserts) * per, 4);
    report_number(report, "updates_per_task", "  updates",
                  (double)(after->updates - before->updates) * per, 4);
    report_number(report, "rows_read_per_task", "rows examined per task",
                  (double)(after->rows_read - before->rows_read) * per, 2);
    report_note("%-16s %12s %18s %10s", "process", "CPU s", "s per million",
                "MiB");
    for (size_t i = 0; i < after->n; i++) {
        const struct process_cost *process = &after->processes[i];
        double cpu = cpu_since(before, process);
        report_note("%-16s %12.2f %18.1f %10.0f", process->name, cpu,
                    cpu * per * 1e6, (double)process->rss_kib / 1024);
        report_value(report, key_of(key, "cpu_s_per_million_", process->name),
                     cpu * per * 1e6);
        report_value(report, key_of(key, "rss_mib_", process->name),
                     (double)process->rss_kib / 1024);
        total += cpu;
    }
    report_number(report, "cpu_s_per_million", "CPU s per million, all",
                  total * per * 1e6, 1);
}

void
cluster_report_idle(struct report *report, const struct cost *before,
                    const struct cost *after)
{
    double seconds = (double)(after->at_ns - before->at_ns) / 1e9;
    char key[64];

    report_number(report, "seconds", "seconds", seconds, 1);
    report_number(report, "statements_per_s", "SQL statements a second, all",
                  (double)(after->questions - before->questions) / seconds, 2);
    report_number(report, "rows_read_per_s", "rows examined a second, all",
                  (double)(after->rows_read - before->rows_read) / seconds, 1);
    report_note("%-16s %14s %10s", "process", "% of a core", "MiB");
    for (size_t i = 0; i < after->n; i++) {
        const struct process_cost *process = &after->processes[i];
        double percent = cpu_since(before, process) / seconds * 100;
        report_note("%-16s %14.2f %10.0f", process->name, percent,
                    (double)process->rss_kib / 1024);
        report_value(report, key_of(key, "cpu_percent_", process->name),
                     percent);
        report_value(report, key_of(key, "rss_mib_", process->name),
                     (double)process->rss_kib / 1024);
    }
}

/* ---- machine, versions, settings ------------------------------------ */

/* What stands behind "NAME:" (and spaces) in a file of /proc. */
static void
proc_value(const char *path, const char *name, char *ret_text, size_t cap)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf text = {0};
    struct toc_str rest, line, label;

    toc_copy(ret_text, cap, TOC_STR("?"));
    if (!read_file(path, &text))
        return;
    rest = toc_buf_view(&text);
    while (toc_str_next(&rest, '\n', &line)) {
        if (!toc_str_next(&line, ':', &label) ||
            !toc_str_starts(label, toc_str_of(name)))
            continue;
        while (line.len > 0 && (*line.ptr == ' ' || *line.ptr == '\t')) {
            line.ptr++;
            line.len--;
        }
        toc_copy(ret_text, cap, line);
        return;
    }
}

static void
describe_machine(struct report *report)
{
    char text[256];
    struct utsname name;

    report_section(report, "machine", "machine");
    proc_value("/proc/cpuinfo", "model name", text, sizeof text);
    report_text(report, "cpu", "processor", text);
    report_count(report, "cores", "cores",
                 (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
    proc_value("/proc/meminfo", "MemTotal", text, sizeof text);
    report_text(report, "memory", "memory", text);
    if (uname(&name) == 0)
        report_text(report, "kernel", "kernel", name.release);
}

/* "Package version" lines of what is installed. */
static void
package_version(const char *pattern, char *ret_text, size_t cap)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf out = {0};
    const char *argv[] = {"dpkg-query", "-W",    "-f",
                          "${Version}", pattern, NULL};

    toc_copy(ret_text, cap,
             run_program(argv, &out) && out.len > 0 ? toc_buf_view(&out)
                                                    : TOC_STR("?"));
}

/* The broker's version, by the jar that it holds open: kafka_2.13-4.1.0.jar. */
static void
kafka_version(const struct cluster *cluster, char *ret_text, size_t cap)
{
    static const char jar[] = "/kafka_";
    char folder[64], path[400], link[1024];
    struct dirent *file;
    DIR *dir;

    toc_copy(ret_text, cap, TOC_STR("?"));
    toc_format(folder, sizeof folder, "/proc/%ld/fd",
               process_pid(cluster, "kafka"));
    dir = opendir(folder);
    while (dir != NULL && (file = readdir(dir)) != NULL) {
        toc_format(path, sizeof path, "%s/%s", folder, file->d_name);
        ssize_t n = readlink(path, link, sizeof link - 1);
        link[n > 0 ? n : 0] = '\0';
        const char *at = strstr(link, jar);
        const char *end = at != NULL ? strstr(at, ".jar") : NULL;
        if (end == NULL)
            continue;
        at += sizeof jar - 1;
        toc_copy(ret_text, cap, (struct toc_str){at, (size_t)(end - at)});
        break;
    }
    if (dir != NULL)
        closedir(dir);
}

static void
describe_versions(struct cluster *cluster, struct report *report)
{
    char text[128];

    report_section(report, "versions", "versions");
    report_text(report, "toc", "TOC", TOC_VERSION);
    sql_text(cluster, "SELECT VERSION()", 0, text, sizeof text);
    report_text(report, "database", "database", text);
    package_version("etcd-server", text, sizeof text);
    report_text(report, "etcd", "etcd", text);
    kafka_version(cluster, text, sizeof text);
    report_text(report, "kafka", "Kafka (Scala, broker)", text);
    package_version("librdkafka1", text, sizeof text);
    report_text(report, "librdkafka", "librdkafka", text);
    package_version("libgrpc-dev", text, sizeof text);
    report_text(report, "grpc", "gRPC", text);
}

static void
describe_variable(struct cluster *cluster, struct report *report,
                  const char *name)
{
    char statement[128], text[128];

    toc_format(statement, sizeof statement, "SHOW GLOBAL VARIABLES LIKE '%s'",
               name);
    sql_text(cluster, statement, 1, text, sizeof text);
    report_text(report, name, name, text);
}

void
cluster_describe(struct cluster *cluster, struct report *report)
{
    static const char *const variables[] = {
        "innodb_flush_log_at_trx_commit",
        "sync_binlog",
        "log_bin",
        "innodb_buffer_pool_size",
        "innodb_log_file_size",
        "innodb_flush_method",
    };

    describe_machine(report);
    describe_versions(cluster, report);
    report_section(report, "settings", "settings");
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        describe_variable(cluster, report, variables[i]);
    report_text(report, "acks", "Kafka acks", "all (the publisher's own)");
    report_count(report, "schedulers", "schedulers", cluster->n_schedulers);
    report_count(report, "executors", "executors", cluster->n_executors);
}
