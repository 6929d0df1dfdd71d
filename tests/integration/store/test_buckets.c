/*
 * Goal: counting buckets loses nothing and counts nothing twice, wherever its
 * pieces end: between days, in a day with more rows than one piece takes, in a
 * millisecond with more than that; and a narrow range of a full day reads that
 * range's rows alone.
 * Method: 300,000 rows made by SQL, in one day; sums of all pieces against the
 * same sums by SQL; the server's counters of rows.
 */
#include "tests/integration/store/fixture.h"

#define IN_DAY 200000 /* one each 100 ms or so */
#define AT_ONCE 100000
#define SLICES (TOC_SHARDS * 3)
#define PIECE_MAX 20000 /* rows of a piece, unless of one slice */

static int64_t day_ms; /* tomorrow */

/* Rows spread over the day from its second minute on, those at once at noon. */
static void
fill(void)
{
    day_ms = now_ms();
    day_ms += DAY - day_ms % DAY;
    make_numbers(IN_DAY + AT_ONCE + 1);
    raw("INSERT INTO task_info SELECT CONV(LEFT(h,2),16,10)*4+seq MOD 3,slot,"
        "UNHEX(CONCAT(LEFT(h,12),LPAD(HEX(slot),12,'0'),RIGHT(h,8))),"
        "IF(seq MOD 5=0,7,0),0,0,0,1,1,0,0,slot,0,0,0,0,0,0,0,'',1,1,"
        "UNHEX(h),IF(seq MOD 2=0,'order','invoice'),CAST(seq AS BINARY),'',"
        "'spec',7,'payload',NULL FROM "
        "(SELECT seq,LEFT(SHA2(seq,256),32) AS h,%lld+IF(seq<=%d,"
        "60000+seq*400,%lld) AS slot FROM numbers WHERE seq BETWEEN 1 AND %d) "
        "AS s",
        (long long)day_ms, IN_DAY, (long long)(DAY / 2), IN_DAY + AT_ONCE);
}

struct sums {
    uint64_t waiting, cancelled, most; /* most: rows of one piece */
    size_t pieces, buckets;
};

static struct sums
count(int64_t from_ms, int64_t to_ms, int64_t width_ms, struct toc_str biz_type)
{
    struct toc_bucket_query query = {from_ms, to_ms, width_ms, biz_type};
    struct toc_cursor cursor = {.set = false};
    struct sums sums = {0};
    int64_t last_ms = INT64_MIN;

    do {
        struct toc_bucket_count *counts;
        uint64_t rows = 0;
        size_t n;
        OK(toc_store_count_buckets(fx.store, &query, &cursor, &fx.arena,
                                   &counts, &n, err));
        for (size_t i = 0; i < n; i++) {
            ck_assert_int_ge(counts[i].start_ms, last_ms);
            ck_assert_int_eq(counts[i].start_ms % width_ms, 0);
            sums.buckets += counts[i].start_ms != last_ms;
            last_ms = counts[i].start_ms;
            sums.waiting += counts[i].n[TOC_STATE_INIT];
            sums.cancelled += counts[i].n[TOC_STATE_CANCELLED];
            rows +=
                counts[i].n[TOC_STATE_INIT] + counts[i].n[TOC_STATE_CANCELLED];
        }
        sums.most = rows > sums.most ? rows : sums.most;
        sums.pieces++;
        ck_assert_uint_lt(sums.pieces, 10000);
    } while (cursor.set);
    return sums;
}

static void
agrees(const char *what, int64_t from_ms, int64_t to_ms, int64_t width_ms)
{
    int64_t begun_ns = toc_os_mono_ns(), ns;
    struct sums sums = count(from_ms, to_ms, width_ms, TOC_STR(""));

    ns = toc_os_mono_ns() - begun_ns;
    printf("%-20s %7llu rows, %4zu buckets, %3zu pieces of at most %llu, "
           "%.1f ms\n",
           what, (unsigned long long)(sums.waiting + sums.cancelled),
           sums.buckets, sums.pieces, (unsigned long long)sums.most,
           (double)ns / 1e6);
    ck_assert_int_eq((int64_t)sums.waiting,
                     raw("SELECT COUNT(*) FROM task_info WHERE slot_ms>=%lld "
                         "AND slot_ms<%lld AND status=0",
                         (long long)from_ms, (long long)to_ms));
    ck_assert_int_eq((int64_t)sums.cancelled,
                     raw("SELECT COUNT(*) FROM task_info WHERE slot_ms>=%lld "
                         "AND slot_ms<%lld AND status=7",
                         (long long)from_ms, (long long)to_ms));
    /* The slice that a piece of one millisecond ends with is taken whole. */
    ck_assert_uint_le(sums.most, PIECE_MAX + AT_ONCE / 500);
}

START_TEST(pieces)
{
    struct sums sums;
    int64_t rows, keys, own;

    fill();
    agrees("days", day_ms - 2 * DAY, day_ms + 3 * DAY, DAY);
    agrees("a day by the minute", day_ms, day_ms + DAY, 60000);
    agrees("across noon", day_ms + DAY / 2 - 1500, day_ms + DAY / 2 + 1500,
           1000);
    agrees("noon alone", day_ms + DAY / 2, day_ms + DAY / 2 + 1, 1000);
    agrees("years", day_ms - 3650 * DAY, day_ms + 365 * DAY, DAY);
    sums = count(day_ms, day_ms + DAY, DAY, TOC_STR("order"));
    ck_assert_uint_eq(sums.waiting + sums.cancelled, (IN_DAY + AT_ONCE) / 2);

    /* A minute, 150 rows: they are read twice (the second time put into
     * groups), and the bounds of each slice. */
    OK(toc_store_now(fx.store, &own, err));
    own = server_counts("Handler_read_%", "Handler_read_key");
    own = server_counts("Handler_read_%", "Handler_read_key") - own;
    rows = server_counts("Handler_read_%", "Handler_read_key");
    keys = server_counts("Handler_read_key", "");
    sums = count(day_ms + 600000, day_ms + 660000, 1000, TOC_STR(""));
    keys = server_counts("Handler_read_key", "") - keys;
    rows = server_counts("Handler_read_%", "Handler_read_key") - rows - 2 * own;
    printf("a minute: %lld rows and %lld keys read\n", (long long)rows,
           (long long)keys);
    ck_assert_uint_eq(sums.waiting + sums.cancelled, 150);
    ck_assert_uint_eq(sums.pieces, 1);
    ck_assert_int_lt(rows, 4 * 150 + 4 * SLICES);
    ck_assert_int_lt(keys, 4 * 150 + 4 * SLICES);
}
END_TEST

STORE_TESTS("store_buckets", 300, pieces)
