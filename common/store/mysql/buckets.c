/*
 * Counts of the rows that lie in a range of time, a piece at a time.
 *
 * A piece is a span of time over all slices; it is made so short that it holds
 * at most EXAMINED_MAX rows, which a look for the row after those tells. Where
 * it meets that row also tells how much shorter to try: tasks are spread evenly
 * over the slices by their keys. The cursor's id carries the span that was
 * good, for the next piece to begin with. When a single millisecond holds more
 * (a million tasks due at midnight), its slices are counted a few at a time.
 * Both statements read the primary key alone, between constant bounds of each
 * slice.
 */
#include "common/store/mysql/row.h"
#include "common/store/mysql/sql.h"
#include "common/store/mysql/store_mysql_internal.h"

#include "common/clock/clock.h"
#include "common/model/slot.h"

#define EXAMINED_MAX 20000
#define SPAN_MS_MAX (32 * TOC_MS_PER_DAY)
#define SLICES (TOC_SHARDS * TOC_SLICES_PER_SHARD)
#define SLICE_LAST (SLICES - TOC_SLICES_PER_SHARD + TOC_PRIORITIES - 1)

struct counting {
    const struct toc_bucket_query *query;
    struct toc_arena *arena;
    struct toc_cursor cursor;
    int64_t from_ms, to_ms; /* the piece */
    unsigned first, last;   /* its slices, both included */
    bool shortened;
    struct toc_bucket_count *counts;
    size_t n;
};

static void
where_piece(struct toc_buf *sql, const struct counting *c)
{
    const char *comma = "";

    toc_buf_text(sql, " FROM task_info FORCE INDEX (PRIMARY) WHERE slice IN (");
    for (unsigned slice = c->first; slice <= c->last; slice++) {
        if (slice % TOC_SLICES_PER_SHARD >= TOC_PRIORITIES)
            continue;
        toc_buf_printf(sql, "%s%u", comma, slice);
        comma = ",";
    }
    toc_buf_printf(sql, ") AND slot_ms>=%lld AND slot_ms<%lld",
                   (long long)c->from_ms, (long long)c->to_ms);
}

/* A span in the cursor's id; none, or nonsense, is the longest. */
static int64_t
span_of(const struct toc_cursor *cursor)
{
    uint64_t span = 0;

    for (size_t i = 0; i < 8; i++)
        span = span << 8 | cursor->id.b[i];
    return span > 0 && span < SPAN_MS_MAX ? (int64_t)span : SPAN_MS_MAX;
}

static void
set_span(struct toc_cursor *cursor, int64_t span_ms)
{
    for (size_t i = 0; i < 8; i++)
        cursor->id.b[i] = (uint8_t)((uint64_t)span_ms >> (56 - 8 * i));
}

/* False: nothing is left of the range. */
static bool
begin_piece(struct counting *c)
{
    const struct toc_bucket_query *q = c->query;
    int64_t span_ms = SPAN_MS_MAX;

    c->first = 0;
    c->last = SLICE_LAST;
    c->from_ms = q->from_ms;
    c->shortened = false;
    if (c->cursor.set && c->cursor.slot_ms >= q->from_ms) {
        c->from_ms = c->cursor.slot_ms;
        c->first = c->cursor.slice <= SLICE_LAST ? c->cursor.slice : 0;
        span_ms = span_of(&c->cursor);
    }
    if (c->from_ms >= q->to_ms)
        return false;
    if (c->first > 0)
        span_ms = 1;
    c->to_ms =
        q->to_ms - c->from_ms < span_ms ? q->to_ms : c->from_ms + span_ms;
    return true;
}

/* Shortens the piece until it does not hold too many rows. */
static enum toc_status
fit_piece(struct toc_my_conn *conn, struct counting *c,
          struct toc_error *reterr)
{
    for (;;) {
        struct toc_buf *sql = toc_my_begin(conn);
        int64_t slice, span_ms;
        enum toc_status st;

        toc_buf_text(sql, "SELECT slice");
        where_piece(sql, c);
        toc_buf_printf(sql, " ORDER BY slice,slot_ms,task_id LIMIT 1 OFFSET %d",
                       EXAMINED_MAX);
        st = toc_my_run(conn, reterr);
        if (st != TOC_OK)
            return st;
        slice = toc_my_number(conn, 0, -1);
        if (slice < 0)
            return TOC_OK;
        if (c->to_ms - c->from_ms == 1) {
            c->last = (unsigned)slice;
            return TOC_OK;
        }
        /* A quarter less, for chance. At most three quarters are left. */
        span_ms = (c->to_ms - c->from_ms) * 3 * (slice + 1) / (4 * SLICES);
        c->to_ms = c->from_ms + (span_ms > 1 ? span_ms : 1);
        c->shortened = true;
    }
}

/* A state that is none is left out, as everywhere. */
static void
take_count(struct counting *c, MYSQL_ROW row, const unsigned long *lens)
{
    int64_t start_ms = toc_field_i64(row, lens, 0) * c->query->width_ms;
    struct toc_str biz_type = toc_field_str(row, lens, 1);
    uint64_t state = toc_field_u64(row, lens, 2);
    struct toc_bucket_count *last = c->n > 0 ? &c->counts[c->n - 1] : NULL;

    if (state >= TOC_STATES)
        return;
    if (last == NULL || last->start_ms != start_ms ||
        !toc_str_eq(last->biz_type, biz_type)) {
        last = &c->counts[c->n++];
        *last = (struct toc_bucket_count){
            .start_ms = start_ms,
            .biz_type = toc_arena_str(c->arena, biz_type)};
    }
    last->n[state] += toc_field_u64(row, lens, 3);
}

static enum toc_status
count_piece(struct toc_my_conn *conn, struct counting *c,
            struct toc_error *reterr)
{
    struct toc_buf *sql = toc_my_begin(conn);
    const unsigned long *lens;
    enum toc_status st;
    MYSQL_ROW row;

    toc_buf_printf(sql,
                   "SELECT slot_ms DIV %lld AS bucket,biz_type,status,"
                   "COUNT(*)",
                   (long long)c->query->width_ms);
    where_piece(sql, c);
    if (c->query->biz_type.len > 0) {
        toc_buf_text(sql, " AND biz_type=");
        toc_sql_bytes(sql, c->query->biz_type);
    }
    toc_buf_text(sql, " GROUP BY bucket,biz_type,status "
                      "ORDER BY bucket,biz_type,status");
    st = toc_my_run(conn, reterr);
    if (st != TOC_OK)
        return st;
    c->n = 0;
    c->counts = toc_arena_calloc(
        c->arena, (size_t)mysql_num_rows(conn->replies[0].rows) + 1,
        sizeof *c->counts);
    while ((row = toc_my_fetch(conn, 0, &lens)) != NULL)
        take_count(c, row, lens);
    return TOC_OK;
}

/* Behind the piece: the next slice of its millisecond, or what follows it in
 * time, with a longer span when this one was not too long. */
static void
move_on(struct counting *c)
{
    int64_t span_ms = c->to_ms - c->from_ms;

    if (c->last < SLICE_LAST) {
        c->cursor = (struct toc_cursor){.set = true,
                                        .slice = (uint16_t)(c->last + 1),
                                        .slot_ms = c->from_ms};
        set_span(&c->cursor, 1);
        return;
    }
    c->cursor = (struct toc_cursor){.set = c->to_ms < c->query->to_ms,
                                    .slot_ms = c->to_ms};
    set_span(&c->cursor, c->shortened ? span_ms : 2 * span_ms);
}

static enum toc_status
piece_body(struct toc_my_conn *conn, void *arg, struct toc_error *reterr)
{
    struct counting *c = arg;
    enum toc_status st;

    c->n = 0;
    if (!begin_piece(c)) {
        c->cursor.set = false;
        return TOC_OK;
    }
    st = fit_piece(conn, c, reterr);
    if (st == TOC_OK)
        st = count_piece(conn, c, reterr);
    if (st == TOC_OK)
        move_on(c);
    return st;
}

enum toc_status
toc_my_count_buckets(void *self, const struct toc_bucket_query *query,
                     struct toc_cursor *cursor, struct toc_arena *arena,
                     struct toc_bucket_count **ret_counts, size_t *ret_n,
                     struct toc_error *reterr)
{
    struct counting c = {.query = query, .arena = arena, .cursor = *cursor};
    enum toc_status st = toc_my_transact(self, piece_body, &c, 0, reterr);

    if (st != TOC_OK)
        return st;
    *cursor = c.cursor;
    *ret_counts = c.counts;
    *ret_n = c.n;
    return TOC_OK;
}
