/*
 * Two stores side by side, the real one and the one in memory, and everything
 * that can be seen of them as text.
 *
 * A sequence plays in the past: its clock begins 60 days before the database's
 * and ends before it, so that the database's clock decides only where a
 * sequence means it to (a caller whose clock is ahead). Times close to the
 * database's own are all shown as NOW, because the two clocks differ by what
 * the sequence has taken.
 */
#ifndef TOC_TESTS_CONTRACT_STORE_COMPARE_PAIR_H
#define TOC_TESTS_CONTRACT_STORE_COMPARE_PAIR_H

#include "common/clock/sim/clock_sim.h"
#include "common/store/mem/store_mem.h"
#include "tests/integration/store/fixture.h"

#define SIDES 2 /* the real one first: it makes the ids */
#define NOW_WITHIN (2 * INT64_C(3600000))
#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)

static struct pair {
    struct toc_store *store[SIDES];
    struct toc_store_mem *mem;
    struct toc_clock_sim clock; /* the memory store's database clock */
    int64_t real_ms;            /* where it stands */
    int64_t base_ms, now_ms;    /* the sequence's clock */
    struct toc_rng rng;
    struct toc_arena arena;    /* of a step */
    struct toc_buf out[SIDES]; /* what a step answered */
    bool days_changed;         /* by this sequence */
    uint64_t seed;
    unsigned step, look_each; /* at everything stored */
    struct toc_buf story;     /* the steps so far */
} p;

static inline int64_t
below(int64_t bound)
{
    return (int64_t)toc_rng_below(&p.rng, (uint64_t)bound);
}

static inline bool
one_in(int64_t n)
{
    return below(n) == 0;
}

/* ---- text
 * ---------------------------------------------------------------------- */

static inline void
add_time(struct toc_buf *out, int64_t ms)
{
    if (ms > p.real_ms - NOW_WITHIN && ms < p.real_ms + NOW_WITHIN)
        toc_buf_text(out, "NOW");
    else
        toc_buf_i64(out, ms);
    toc_buf_char(out, ' ');
}

static inline void
add_number(struct toc_buf *out, uint64_t value)
{
    toc_buf_u64(out, value);
    toc_buf_char(out, ' ');
}

static inline void
add_str(struct toc_buf *out, struct toc_str s)
{
    if (s.ptr == NULL && s.len > 0)
        toc_buf_printf(out, "long:%zu ", s.len);
    else
        toc_buf_printf(out, "%zu:%.*s ", s.len, (int)(s.len < 40 ? s.len : 40),
                       s.len > 0 ? s.ptr : "");
}

static inline void
add_id(struct toc_buf *out, struct toc_task_id id)
{
    char text[TOC_TASK_ID_TEXT_MAX];

    toc_buf_printf(out, "%s ", toc_task_id_format(id, text));
}

static inline void
add_ref(struct toc_buf *out, const struct toc_task_ref *ref)
{
    add_number(out, ref->slice);
    add_time(out, ref->slot_ms);
    add_id(out, ref->id);
    add_number(out, ref->version);
}

static inline void
add_task(struct toc_buf *out, const struct toc_task *task)
{
    struct toc_task_ref ref = toc_task_ref_of(task);

    add_ref(out, &ref);
    toc_buf_printf(out, "%s f%u a%u c%u fire%u t%llu ",
                   toc_state_text(task->state), task->flags, task->attempt,
                   task->claims, (unsigned)task->fire,
                   (unsigned long long)task->lock_token);
    add_time(out, task->lock_until_ms);
    add_time(out, task->due_ms);
    add_time(out, task->claimed_ms);
    add_time(out, task->called_ms);
    add_time(out, task->ended_ms);
    add_number(out, task->sched_node);
    add_number(out, task->exec_node);
    toc_buf_printf(out, "%s ", toc_result_text(task->result));
    add_str(out, task->error);
    add_str(out, task->biz_type);
    add_str(out, task->biz_id);
    add_str(out, task->name);
    add_str(out, task->spec);
    add_str(out, task->payload);
    toc_buf_char(out, '\n');
}

static inline void
add_status(struct toc_buf *out, enum toc_status st, const struct toc_error *err)
{
    toc_buf_printf(out, "%s\n", toc_status_text(st));
    if (st != TOC_OK && st != TOC_NOT_FOUND)
        toc_buf_printf(&p.story, "    %s: %s\n", toc_status_text(st), err->msg);
}

/* ---- all that is stored
 * ---------------------------------------------------------- */

#define TASK_COLUMNS                                                         \
    "slice,slot_ms,task_id,status,flags,attempt,claims,fire,version,"        \
    "lock_token,lock_until_ms,due_ms,created_ms,claimed_ms,called_ms,"       \
    "ended_ms,sched_node,exec_node,result,line_id,target_id,key_hash,error," \
    "biz_type,biz_id,name,spec,IF(payload_long IS NULL,payload_short,"       \
    "payload_long)"

static const struct {
    const char *name, *sql;
} everything[] = {
    {"task", "SELECT " TASK_COLUMNS " FROM task_info ORDER BY slice,slot_ms,"
             "task_id"},
    {"key", "SELECT key_hash,slice,slot_ms,task_id,content FROM task_key "
            "ORDER BY key_hash"},
    {"history", "SELECT key_hash,slice,slot_ms,task_id FROM key_history "
                "ORDER BY key_hash,slot_ms,task_id"},
    {"log", "SELECT slice,slot_ms,task_id,log_id,kind,result,fire,attempt,"
            "next_slot_ms,sched_node,exec_node,claimed_ms,called_ms,at_ms,"
            "who,detail FROM task_log ORDER BY task_id,log_id"},
    {"dead", "SELECT " TASK_COLUMNS ",dead_ms,reason FROM dead_task ORDER BY "
             "task_id"},
    {"straggler", "SELECT slice,slot_ms,task_id FROM straggler ORDER BY slice,"
                  "slot_ms,task_id"},
    {"shard", "SELECT shard_id,state,low_ms,keygc_ms FROM shard_owner ORDER BY "
              "shard_id"},
};

static inline void
dump_mysql(struct toc_buf *out)
{
    for (size_t i = 0; i < sizeof everything / sizeof everything[0]; i++) {
        MYSQL_RES *rows;
        MYSQL_ROW row;
        ck_assert_msg(mysql_query(fx.raw, everything[i].sql) == 0, "%s",
                      mysql_error(fx.raw));
        rows = mysql_store_result(fx.raw);
        ck_assert_ptr_nonnull(rows);
        while ((row = mysql_fetch_row(rows)) != NULL) {
            const unsigned long *lens = mysql_fetch_lengths(rows);
            const MYSQL_FIELD *fields = mysql_fetch_fields(rows);
            toc_buf_text(out, everything[i].name);
            for (unsigned c = 0; c < mysql_num_fields(rows); c++) {
                toc_buf_char(out, '|');
                if ((fields[c].flags & NUM_FLAG) != 0)
                    toc_buf_add(out, row[c], lens[c]);
                else
                    toc_buf_hex(out, row[c], lens[c]);
            }
            toc_buf_char(out, '\n');
        }
        mysql_free_result(rows);
    }
    if (p.days_changed)
        toc_buf_printf(
            out, "days|%lld|%lld\n",
            (long long)raw("SELECT MIN(CAST(PARTITION_DESCRIPTION AS SIGNED)) "
                           "FROM information_schema.PARTITIONS WHERE "
                           "TABLE_SCHEMA=DATABASE() AND TABLE_NAME='task_info' "
                           "AND PARTITION_NAME LIKE 'p2%%'"),
            (long long)raw("SELECT COUNT(*) "
                           "FROM information_schema.PARTITIONS WHERE "
                           "TABLE_SCHEMA=DATABASE() AND TABLE_NAME='task_info' "
                           "AND PARTITION_NAME LIKE 'p2%%'"));
}

/* A field that is a time near the database's clock; 13 digits are nothing else.
 */
static inline bool
is_now(struct toc_str field)
{
    int64_t ms;

    return field.len == 13 && toc_parse_i64(field, 0, INT64_MAX, &ms) &&
           ms > p.real_ms - NOW_WITHIN && ms < p.real_ms + NOW_WITHIN;
}

/* The lines without those that are not compared. */
static inline void
add_lines(struct toc_buf *out, struct toc_str text)
{
    struct toc_str line, field;

    while (toc_str_next(&text, '\n', &line)) {
        if (line.len == 0 || toc_str_starts(line, TOC_STR("node|")) ||
            (!p.days_changed && toc_str_starts(line, TOC_STR("days|"))))
            continue;
        while (toc_str_next(&line, '|', &field)) {
            if (is_now(field))
                toc_buf_text(out, "NOW");
            else
                toc_buf_str(out, field);
            toc_buf_char(out, '|');
        }
        toc_buf_char(out, '\n');
    }
}

static inline void
dump(int side, struct toc_buf *out)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf text = {0};

    if (side == 0)
        dump_mysql(&text);
    else
        toc_store_mem_dump(p.mem, &text);
    add_lines(out, toc_buf_view(&text));
}

/* ---- comparing
 * ------------------------------------------------------------------ */

static inline void
differ(const char *what, struct toc_str a, struct toc_str b)
{
    struct toc_str x, y;
    bool more_a, more_b;

    do {
        x = y = (struct toc_str){NULL, 0};
        more_a = toc_str_next(&a, '\n', &x);
        more_b = toc_str_next(&b, '\n', &y);
    } while (more_a && more_b && toc_str_eq(x, y));
    ck_abort_msg("TOC_CONTRACT_SEED=%llu step %u: %s differs\n%.*s"
                 "  real: %.*s\n  mem:  %.*s\n  base %lld now %lld\n",
                 (unsigned long long)p.seed, p.step, what, (int)p.story.len,
                 p.story.data, (int)x.len, x.ptr, (int)y.len, y.ptr,
                 (long long)p.base_ms, (long long)p.now_ms);
}

static inline void
compare_answers(void)
{
    if (!toc_str_eq(toc_buf_view(&p.out[0]), toc_buf_view(&p.out[1])))
        differ("the answer", toc_buf_view(&p.out[0]), toc_buf_view(&p.out[1]));
}

static inline void
compare_stored(void)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf real = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf mem = {0};

    dump(0, &real);
    dump(1, &mem);
    if (!toc_str_eq(toc_buf_view(&real), toc_buf_view(&mem)))
        differ("what is stored", toc_buf_view(&real), toc_buf_view(&mem));
    toc_buf_reset(&mem);
    if (!toc_store_mem_check(p.mem, &mem))
        differ("what must be true", toc_str_of(""), toc_buf_view(&mem));
}

/* ---- beginning anew
 * -------------------------------------------------------------- */

static inline void
drop_all_days(const char *table)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf sql = {0};
    MYSQL_RES *rows;
    MYSQL_ROW row;
    char ask[256];

    toc_format(ask, sizeof ask,
               "SELECT PARTITION_NAME FROM information_schema.PARTITIONS WHERE "
               "TABLE_SCHEMA=DATABASE() AND TABLE_NAME='%s' AND "
               "PARTITION_NAME LIKE 'p2%%'",
               table);
    ck_assert_int_eq(mysql_query(fx.raw, ask), 0);
    rows = mysql_store_result(fx.raw);
    toc_buf_printf(&sql, "ALTER TABLE %s DROP PARTITION ", table);
    for (const char *comma = ""; (row = mysql_fetch_row(rows)) != NULL;
         comma = ",")
        toc_buf_printf(&sql, "%s%s", comma, row[0]);
    mysql_free_result(rows);
    ck_assert_msg(mysql_query(fx.raw, sql.data) == 0, "%s: %s", sql.data,
                  mysql_error(fx.raw));
}

/* The days of the past in which sequences play, or (much faster) one long day
 * for all of them. */
static inline void
make_days_anew(bool with_days)
{
    static const char *const tables[] = {"task_info", "task_log",
                                         "key_history"};

    for (size_t i = 0; i < 3; i++) {
        if (raw("SELECT COUNT(*) FROM information_schema.PARTITIONS WHERE "
                "TABLE_SCHEMA=DATABASE() AND TABLE_NAME='%s'",
                tables[i]) > 1)
            drop_all_days(tables[i]);
        if (!with_days)
            raw("ALTER TABLE %s ADD PARTITION (PARTITION p29990101 VALUES LESS "
                "THAN (%lld))",
                tables[i], (long long)(p.base_ms + 120 * DAY));
    }
    if (with_days)
        OK(toc_store_make_days(p.store[0], p.base_ms, err));
    p.days_changed = with_days;
}

static inline void
open_mem(void)
{
    struct toc_store_mem_options options = {.clock = &p.clock.clock,
                                            .seed = p.seed};

    toc_store_mem_close(p.mem);
    /* Days and marks as of base, then the clock goes to where it stays. */
    toc_clock_sim_init(&p.clock, (struct toc_wall){p.base_ms});
    p.mem = toc_store_mem_open(&options);
    toc_clock_sim_step_wall(&p.clock, p.real_ms - p.base_ms);
    p.store[1] = toc_store_mem_port(p.mem);
}

static inline void
pair_setup(void)
{
    setup();
    memset(&p, 0, sizeof p);
    p.real_ms = now_ms();
    p.base_ms = p.real_ms - p.real_ms % DAY - 60 * DAY + 12 * HOUR;
    p.store[0] = fx.store;
    make_days_anew(false);
}

static inline void
pair_teardown(void)
{
    toc_store_mem_close(p.mem);
    toc_arena_done(&p.arena);
    toc_buf_done(&p.out[0]);
    toc_buf_done(&p.out[1]);
    toc_buf_done(&p.story);
    teardown();
}

static inline void
begin_sequence(uint64_t seed, bool with_days)
{
    if (p.days_changed || with_days)
        make_days_anew(with_days);
    raw("START TRANSACTION;DELETE FROM task_info;DELETE FROM task_key;DELETE "
        "FROM key_history;"
        "DELETE FROM task_log;DELETE FROM dead_task;DELETE FROM straggler;"
        "UPDATE shard_owner SET state=0,low_ms=%lld,keygc_ms=%lld;COMMIT",
        (long long)(p.base_ms - MINUTE), (long long)(p.base_ms - MINUTE));
    p.seed = seed;
    p.step = 0;
    p.now_ms = p.base_ms;
    toc_rng_seed(&p.rng, seed);
    toc_buf_reset(&p.story);
    open_mem();
}

#endif
