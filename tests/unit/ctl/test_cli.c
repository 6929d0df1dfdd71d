/*
 * Goal: command lines are understood; what is looked at is asked for and shown
 * as it should be; the exit codes are the documented ones.
 * Method: command lines run inside the test against services whose answers the
 * test writes; requests, both streams and exit codes are looked at.
 */
#include "tests/unit/ctl/cli.h"

/* ---- the command line ---- */

START_TEST(usage_errors)
{
    start();
    run(2, "frobnicate");
    has(cli.err, "error: unknown command: frobnicate\nhint: tocctl help\n");
    run(2, "get");
    has(cli.err, "an argument is missing\nhint: usage: tocctl get REF...");
    run(2, "nodes", "extra");
    has(cli.err, "too many arguments: extra");
    run(2, "get", "order/42", "--frob");
    has(cli.err, "unknown flag --frob");
    run(2, "list", "--limit");
    has(cli.err, "--limit needs a value: N");
    run(2, "cancel", "order/42", "--all=yes");
    has(cli.err, "--all takes no value");
    run(2, "list", "--limit", "many");
    has(cli.err, "--limit many: must be a number from 0");
    run(2, "get", "order/42", "-o", "xml");
    has(cli.err, "must be table, wide, json, yaml or id");
    run(2, "get", "order/42", "--timeout", "0s");
    has(cli.err, "must be a duration");
    run(2, "get", "order");
    has(cli.err, "neither a task id");
    run(2, "health", "nowhere");
    has(cli.err, "not an address: nowhere");
    run(2, "get", "\x1b[2J");
    has(cli.err, "\\x1b[2J");
    ck_assert_uint_eq(cli.n_sent, 0);
}
END_TEST

START_TEST(help_and_version)
{
    start();
    run(0, "help");
    has(cli.out, "dead redrive");
    has(cli.out, "It ends with:\n  0  done\n");
    run(0, "--help");
    has(cli.out, "Commands:");
    run(0, "dead", "redrive", "-h");
    has(cli.out, "tocctl dead redrive [REF...] [flags]");
    run(0, "help", "get", "tasks");
    has(cli.out, "tocctl list [flags]");
    run(0, "get", "--help"); /* help before the check of arguments */
    run(2, "help", "nothing");
    run(0, "version");
    has(cli.out, "tocctl " TOC_VERSION);
    run(0, "--version");
    has(cli.out, "tocctl " TOC_VERSION);
    run(0, "completion", "bash");
    has(cli.out, "complete -o default -F _tocctl tocctl");
    has(cli.out, "'dead redrive') flags=' --all --yes");
    run(2, "completion", "tcsh");
    ck_assert_uint_eq(cli.n_sent, 0);
}
END_TEST

START_TEST(no_addresses)
{
    start();
    unsetenv("TOC_SCHEDULER");
    unsetenv("TOC_ADMIN");
    run(2, "get", "order/42");
    has(cli.err, "no address of a scheduler\nhint: give --scheduler");
    run(2, "nodes");
    has(cli.err, "no address of an admin");
    run(2, "nodes", "--admin", "a1:1,,b:99999");
    has(cli.err, "not an address: b:99999");
    run(2, "nodes", "--admin", ",");
    has(cli.err, "--admin is empty");
    ck_assert_uint_eq(cli.n_sent, 0);
}
END_TEST

START_TEST(schedulers_are_found_through_the_admin)
{
    Toc__V1__ListNodesResponse nodes = TOC__V1__LIST_NODES_RESPONSE__INIT;
    Toc__V1__Node node[3];
    Toc__V1__Node *refs[] = {&node[0], &node[1], &node[2]};

    start();
    unsetenv("TOC_SCHEDULER");
    for (int i = 0; i < 3; i++)
        toc__v1__node__init(&node[i]);
    node[0].role = "executor";
    node[0].address = "e:1";
    node[1].role = node[2].role = "scheduler";
    node[1].address = "s:1";
    node[2].address = "not an address";
    nodes.nodes = refs;
    nodes.n_nodes = 3;
    answer(TOC_OK, &nodes.base);
    answer(TOC_OK, &task.base);
    answer(TOC_OK, &task.base);
    run(0, "get", "order/42/pay", "order/42/pay");
    ck_assert_str_eq(cli.sent[0].address, "a1:1");
    ck_assert_str_eq(cli.sent[0].method, "ListNodes");
    ck_assert_str_eq(cli.sent[1].address, "s:1");
    ck_assert_str_eq(cli.sent[2].address, "s:1"); /* asked once */
}
END_TEST

START_TEST(the_next_scheduler_when_one_is_away)
{
    start();
    answer(TOC_UNAVAILABLE, NULL);
    answer(TOC_OK, &task.base);
    run(0, "get", "order/42/pay");
    ck_assert_str_eq(cli.sent[0].address, "s1:1");
    ck_assert_str_eq(cli.sent[1].address, "s2:2");
}
END_TEST

START_TEST(exit_codes_of_statuses)
{
    static const struct {
        enum toc_status st;
        int code;
        size_t calls;
    } all[] = {
        {TOC_UNAVAILABLE, 5, 2},   {TOC_DEADLINE, 5, 1}, {TOC_EXHAUSTED, 5, 1},
        {TOC_NOT_FOUND, 3, 1},     {TOC_EXISTS, 4, 1},   {TOC_CONFLICT, 4, 1},
        {TOC_PRECONDITION, 4, 1},  {TOC_INVALID, 2, 1},  {TOC_INTERNAL, 1, 1},
        {TOC_UNIMPLEMENTED, 1, 1}, {TOC_UNKNOWN, 1, 1},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        start();
        answer(all[i].st, NULL);
        answer(all[i].st, NULL);
        run(all[i].code, "get", "order/42");
        has(cli.err, "error: order/42: no luck\n");
        ck_assert_str_eq(cli.out, "");
        ck_assert_uint_eq(cli.n_sent, all[i].calls);
    }
}
END_TEST

START_TEST(violations_are_told_line_by_line)
{
    struct toc_rpc_failure failure;

    start();
    toc_rpc_failure_init(&failure, &cli.arena);
    toc_rpc_violate(&failure, "target.url", "must begin with \x1b[31mgrpc://");
    toc_rpc_violate(&failure, "delay", "must be set");
    answer_failure(&failure);
    run(2, "submit", "order/42", "--in", "5s", "--target", "x");
    has(cli.err, "error: order/42: ");
    has(cli.err, "\n  target.url: must begin with \\x1b[31mgrpc://\n");
    has(cli.err, "\n  delay: must be set\n");
}
END_TEST

/* ---- looking ---- */

START_TEST(get_as_a_table)
{
    const Toc__V1__GetRequest *request;

    start();
    task.failed_attempts = 2;
    answer(TOC_OK, &task.base);
    run(0, "get", "order/42/pay");
    ck_assert_str_eq(cli.out, "KEY           STATE  DUE                      "
                              "           FAILED  LAST RESULT\n"
                              "order/42/pay  INIT   2030-01-01T00:04:12.000Z "
                              " in 4m12s  2       -\n");
    request = cli.sent[0].request;
    ck_assert_int_eq(request->which_case, TOC__V1__GET_REQUEST__WHICH_KEY);
    ck_assert_str_eq(request->key->name, "pay");
    answer(TOC_OK, &task.base);
    run(0, "get", "task", ID, "-o", "wide");
    has(cli.out, ID "  order/42/pay");
    request = cli.sent[1].request;
    ck_assert_str_eq(request->task_id, ID);
}
END_TEST

START_TEST(get_as_data)
{
    start();
    task.payload.data = (uint8_t *)(uintptr_t) "{}";
    task.payload.len = 2;
    answer(TOC_OK, &task.base);
    run(0, "get", "order/42/pay", "-o", "json");
    ck_assert_str_eq(cli.out, "{\n"
                              "  \"taskId\": \"" ID "\",\n"
                              "  \"key\": {\n"
                              "    \"bizType\": \"order\",\n"
                              "    \"bizId\": \"42\",\n"
                              "    \"name\": \"pay\"\n"
                              "  },\n"
                              "  \"state\": \"STATE_INIT\",\n"
                              "  \"dueTime\": \"2030-01-01T00:04:12Z\",\n"
                              "  \"createTime\": \"2029-12-31T23:59:00Z\",\n"
                              "  \"fire\": 1,\n"
                              "  \"etag\": \"7\",\n"
                              "  \"payload\": \"e30=\"\n"
                              "}\n");
    answer(TOC_OK, &task.base);
    run(0, "get", "order/42/pay", "-oyaml");
    ck_assert_str_eq(cli.out, "taskId: \"" ID "\"\n"
                              "key:\n"
                              "  bizType: order\n"
                              "  bizId: \"42\"\n"
                              "  name: pay\n"
                              "state: STATE_INIT\n"
                              "dueTime: \"2030-01-01T00:04:12Z\"\n"
                              "createTime: \"2029-12-31T23:59:00Z\"\n"
                              "fire: 1\n"
                              "etag: \"7\"\n"
                              "payload: \"e30=\"\n");
    answer(TOC_OK, &task.base);
    run(0, "get", "order/42/pay", "--output=id");
    ck_assert_str_eq(cli.out, ID "\n");
}
END_TEST

START_TEST(get_shows_what_it_can)
{
    start();
    answer(TOC_NOT_FOUND, NULL);
    answer(TOC_OK, &task.base);
    run(3, "get", "order/1", "order/42/pay", "-o", "yaml");
    has(cli.err, "error: order/1: no luck");
    has(cli.out, "tasks:\n- taskId: \"" ID "\"\n  key:\n    bizType: order\n");
}
END_TEST

START_TEST(control_characters_are_shown_escaped)
{
    Toc__V1__Attempt attempt = TOC__V1__ATTEMPT__INIT;
    Toc__V1__DeadLetter letter = TOC__V1__DEAD_LETTER__INIT;
    Toc__V1__DeadLetter *letters[] = {&letter};
    Toc__V1__ListDeadResponse page = TOC__V1__LIST_DEAD_RESPONSE__INIT;

    start();
    key.biz_id = "4\x1b[2J2";
    attempt.error = "bad\n\x1b]0;owned\x07 news";
    task.last_attempt = &attempt;
    letter.task = &task;
    letter.reason = "\xc2\x9b"
                    "31m";
    page.dead = letters;
    page.n_dead = 1;
    answer(TOC_OK, &page.base);
    run(0, "dead", "list");
    has(cli.out, "order/4%1B[2J2/pay");
    has(cli.out, "bad\\n\\x1b]0;owned\\x07 news");
    has(cli.out, "\\u009b31m");
    lacks(cli.out, "\x1b");
    for (int i = 0; i < 2; i++)
        answer(TOC_OK, &page.base);
    run(0, "dead", "list", "-o", "json");
    lacks(cli.out, "\x1b");
    lacks(cli.out, "\xc2\x9b");
    run(0, "dead", "list", "-o", "yaml");
    lacks(cli.out, "\x1b");
    lacks(cli.out, "\xc2\x9b");
}
END_TEST

START_TEST(list_goes_through_pages)
{
    Toc__V1__Task *two[] = {&task, &task};
    Toc__V1__ListTasksResponse first = TOC__V1__LIST_TASKS_RESPONSE__INIT;
    Toc__V1__ListTasksResponse empty = TOC__V1__LIST_TASKS_RESPONSE__INIT;
    const Toc__V1__ListTasksRequest *request;

    start();
    first.tasks = two;
    first.n_tasks = 2;
    first.next_page_token = "t1";
    empty.next_page_token = "t2";
    answer(TOC_OK, &first.base);
    answer(TOC_OK, &empty.base);
    answer(TOC_OK, &first.base);
    run(0, "list", "--biz-type", "order", "--state", "retry,DEAD", "--due-to",
        "2031-01-01T00:00:00Z", "--limit", "3", "-o", "id");
    ck_assert_str_eq(cli.out, ID "\n" ID "\n" ID "\n");
    has(cli.err, "--limit 0");
    request = cli.sent[0].request;
    ck_assert_str_eq(request->filter->biz_type, "order");
    ck_assert_uint_eq(request->filter->n_states, 2);
    ck_assert_int_eq(request->filter->states[0], TOC__V1__STATE__STATE_RETRY);
    ck_assert_int_eq(request->filter->states[1], TOC__V1__STATE__STATE_DEAD);
    ck_assert_ptr_null(request->filter->due_from);
    ck_assert_ptr_nonnull(request->filter->due_to);
    ck_assert_uint_eq(request->page_size, 3);
    ck_assert_str_eq(request->page_token, "");
    request = cli.sent[1].request;
    ck_assert_str_eq(request->page_token, "t1");
    ck_assert_uint_eq(request->page_size, 1);
    ck_assert_str_eq(request->filter->biz_type, "order"); /* still there */
    request = cli.sent[2].request;
    ck_assert_str_eq(request->page_token, "t2");
}
END_TEST

START_TEST(list_of_nothing)
{
    Toc__V1__ListTasksResponse none = TOC__V1__LIST_TASKS_RESPONSE__INIT;

    start();
    for (int i = 0; i < 4; i++)
        answer(TOC_OK, &none.base);
    run(0, "get", "tasks");
    ck_assert_str_eq(cli.out, "");
    ck_assert_str_eq(cli.err, "no tasks\n");
    run(0, "list", "-o", "json");
    ck_assert_str_eq(cli.out, "{\n  \"tasks\": []\n}\n");
    run(0, "list", "-o", "yaml");
    ck_assert_str_eq(cli.out, "tasks: []\n");
    run(0, "list", "-o", "id");
    ck_assert_str_eq(cli.out, "");
    ck_assert_str_eq(cli.err, "");
    run(2, "list", "--state", "sleeping");
    has(cli.err, "--state sleeping: must be one of init, scheduling,");
    run(2, "list", "--biz-id", "1");
    has(cli.err, "--biz-id needs --biz-type");
    run(2, "list", "--due-to", "tomorrow");
    has(cli.err, "must be a time as in");
}
END_TEST

static Toc__V1__Bucket
bucket_of(const char *id, Toc__V1__BucketLine **lines, size_t n)
{
    Toc__V1__Bucket bucket = TOC__V1__BUCKET__INIT;

    bucket.id = (char *)toc_arena_text(&cli.arena, toc_str_of(id));
    bucket.lines = lines;
    bucket.n_lines = n;
    bucket.start_time = toc_api_time(&cli.arena, NOW_MS);
    bucket.end_time = toc_api_time(&cli.arena, NOW_MS + 60000);
    return bucket;
}

/* The second page begins with the rest of the bucket that the first one ends
 * with. */
START_TEST(buckets_in_parts)
{
    Toc__V1__BucketLine a = TOC__V1__BUCKET_LINE__INIT;
    Toc__V1__BucketLine b = TOC__V1__BUCKET_LINE__INIT;
    Toc__V1__BucketLine *lines[] = {&a, &b}, *only_b[] = {&b};
    Toc__V1__ListBucketsResponse first = TOC__V1__LIST_BUCKETS_RESPONSE__INIT;
    Toc__V1__ListBucketsResponse rest = TOC__V1__LIST_BUCKETS_RESPONSE__INIT;
    Toc__V1__Bucket buckets[2];
    Toc__V1__Bucket *one[] = {&buckets[0]}, *two[] = {&buckets[0], &buckets[1]};
    const Toc__V1__ListBucketsRequest *sent;
    int64_t ms;

    start();
    a.biz_type = "order";
    a.waiting = 4;
    a.dead = 1;
    b.biz_type = "\x1b[31mred";
    b.succeeded = 5000000000u;
    buckets[0] = bucket_of("203001010000", lines, 2);
    buckets[1] = bucket_of("203001010001", only_b, 1);
    first.buckets = one;
    first.n_buckets = 1;
    first.next_page_token = "t1";
    rest.buckets = two;
    rest.n_buckets = 2;
    for (int i = 0; i < 3; i++) {
        answer(TOC_OK, &first.base);
        answer(TOC_OK, &rest.base);
    }
    run(0, "buckets");
    has(cli.out, "BUCKET        BIZ TYPE     WAITING  EXECUTING  SUCCEEDED    "
                 "DEAD  CANCELLED  SKIPPED  DISCARDED\n");
    has(cli.out, "203001010000  order        8        0          0            "
                 "2     0          0        0\n");
    has(cli.out,
        "203001010000  \\x1b[31mred  0        0          10000000000 ");
    has(cli.out,
        "203001010001  \\x1b[31mred  0        0          5000000000  ");
    lacks(cli.out, "START");
    sent = cli.sent[0].request;
    ck_assert_str_eq(cli.sent[0].method, "ListBuckets");
    ck_assert_int_eq(sent->size, TOC__V1__BUCKET_SIZE__BUCKET_SIZE_MINUTE);
    ck_assert(toc_api_time_ms(sent->from, &ms) && ms == NOW_MS);
    ck_assert(toc_api_time_ms(sent->to, &ms) && ms == NOW_MS + 3600000);
    sent = cli.sent[1].request;
    ck_assert_str_eq(sent->page_token, "t1");
    ck_assert(toc_api_time_ms(sent->from, &ms) && ms == NOW_MS);
    run(0, "get", "buckets", "--by", "day", "--from", "2030-01-31T12:00:00Z",
        "--biz-type", "order", "-o", "wide");
    has(cli.out, "  2030-01-01T00:00:00.000Z  2030-01-01T00:01:00.000Z\n");
    sent = cli.sent[3].request;
    ck_assert_int_eq(sent->size, TOC__V1__BUCKET_SIZE__BUCKET_SIZE_DAY);
    ck_assert_str_eq(sent->biz_type, "order");
    ck_assert_int_eq(sent->to->seconds - sent->from->seconds, 60 * 86400);
    run(0, "buckets", "-o", "json");
    has(cli.out, "\"id\": \"203001010000\"");
    has(cli.out, "\"waiting\": \"8\"");
}
END_TEST

START_TEST(buckets_of_nothing)
{
    Toc__V1__ListBucketsResponse none = TOC__V1__LIST_BUCKETS_RESPONSE__INIT;

    start();
    for (int i = 0; i < 3; i++)
        answer(TOC_OK, &none.base);
    run(0, "buckets");
    ck_assert_str_eq(cli.out, "");
    ck_assert_str_eq(cli.err, "no tasks in that time\n");
    run(0, "buckets", "-o", "json");
    ck_assert_str_eq(cli.out, "{\n  \"buckets\": []\n}\n");
    run(0, "buckets", "-o", "id");
    ck_assert_str_eq(cli.out, "");
    run(2, "buckets", "--by", "week");
    has(cli.err, "--by week: must be one of day, hour, minute, second");
    run(2, "buckets", "--from", "now");
    has(cli.err, "must be a time as in");
    run(2, "buckets", "20251218");
}
END_TEST

START_TEST(describe_tells_the_story)
{
    Toc__V1__Timeline timeline = TOC__V1__TIMELINE__INIT;
    Toc__V1__TimelineEntry entries[3];
    Toc__V1__TimelineEntry *refs[] = {&entries[0], &entries[1], &entries[2]};
    Toc__V1__Attempt attempt = TOC__V1__ATTEMPT__INIT;
    Toc__V1__Target target = TOC__V1__TARGET__INIT;

    start();
    for (int i = 0; i < 3; i++)
        toc__v1__timeline_entry__init(&entries[i]);
    entries[0].time = toc_api_time(&cli.arena, NOW_MS - 60000);
    entries[0].event = "created";
    entries[1].time = toc_api_time(&cli.arena, NOW_MS - 2000);
    entries[1].event = "attempt";
    attempt.number = 1;
    attempt.call_time = toc_api_time(&cli.arena, NOW_MS - 1990);
    attempt.end_time = toc_api_time(&cli.arena, NOW_MS - 1900);
    attempt.result = TOC__V1__ATTEMPT_RESULT__ATTEMPT_RESULT_DONE;
    attempt.executor_node = "executor-1";
    entries[1].attempt = &attempt;
    entries[2].time = toc_api_time(&cli.arena, NOW_MS - 1000);
    entries[2].event = "cancel";
    entries[2].who = "ann";
    entries[2].detail = "paid\tby phone";
    timeline.task = &task;
    timeline.entries = refs;
    timeline.n_entries = 3;
    target.url = "grpc://orders:7000";
    target.batch_max = 16;
    task.target = &target;
    task.payload.data = (uint8_t *)(uintptr_t) "line 1\nline\t2";
    task.payload.len = 13;
    task.content_type = "text/plain";
    answer(TOC_OK, &timeline.base);
    run(0, "describe", "order/42/pay");
    has(cli.out, "Due:          2030-01-01T00:04:12.000Z (in 4m12s)\n");
    has(cli.out, "Target:       grpc://orders:7000, up to 16 in a call\n");
    has(cli.out, "Payload:      13 bytes, text/plain\n  line 1\n  line\\t2\n");
    has(cli.out, "TIME                              EVENT      RESULT  BY      "
                 "    DETAIL\n");
    has(cli.out, "attempt 1  DONE    executor-1  answered in 90ms\n");
    has(cli.out, "1s ago  cancel             ann         paid\\tby phone\n");
}
END_TEST

START_TEST(payloads_that_are_no_text)
{
    Toc__V1__Timeline timeline = TOC__V1__TIMELINE__INIT;
    uint8_t bytes[] = {0, 1, 2};

    start();
    task.payload.data = bytes;
    task.payload.len = sizeof bytes;
    timeline.task = &task;
    answer(TOC_OK, &timeline.base);
    run(0, "describe", ID);
    has(cli.out, "Payload:      3 bytes, not text\n");
}
END_TEST

/* ---- cluster ---- */

START_TEST(shards_by_owner)
{
    Toc__V1__ListShardsResponse answer_ = TOC__V1__LIST_SHARDS_RESPONSE__INIT;
    Toc__V1__Shard shard[6];
    Toc__V1__Shard *refs[6];

    start();
    for (unsigned i = 0; i < 6; i++) {
        toc__v1__shard__init(&shard[i]);
        refs[i] = &shard[i];
        shard[i].shard = i;
        shard[i].state = "OPEN";
        shard[i].owner = i == 5 ? "" : i == 3 ? "s2" : "s1";
        shard[i].quarantined = i == 2;
        shard[i].low_water_mark = toc_api_time(
            &cli.arena, NOW_MS - (i == 5 ? 6000 : 1000 * (int64_t)i));
    }
    answer_.shards = refs;
    answer_.n_shards = 6;
    answer(TOC_OK, &answer_.base);
    answer(TOC_OK, &answer_.base);
    run(0, "shards");
    ck_assert_str_eq(cli.out,
                     "OWNER  ADDRESS  COUNT  STATE              LOW-WATER MARK"
                     "  SHARDS\n"
                     "s1     -        3      OPEN               4s ago        "
                     "  0-1,4\n"
                     "s1     -        1      OPEN, QUARANTINED  2s ago        "
                     "  2\n"
                     "s2     -        1      OPEN               3s ago        "
                     "  3\n"
                     "-      -        1      OPEN               6s ago        "
                     "  5\n");
    run(0, "get", "shards", "-o", "wide");
    has(cli.out, "\n1      s1     -        OPEN               "
                 "2029-12-31T23:59:59.000Z  1s ago\n");
    has(cli.out, "\n2      s1     -        OPEN, QUARANTINED  ");
}
END_TEST

START_TEST(what_cannot_be_written_is_an_error)
{
    char *argv[] = {"tocctl", "help", NULL};
    struct ctl ctl = {.clk = &cli.clock.clock};

    start();
    ctl.out = fopen("/dev/full", "w");
    ctl.err = stderr;
    ctl.in = stdin;
    ck_assert_ptr_nonnull(ctl.out);
    ck_assert_int_eq(ctl_run(&ctl, 2, argv), CTL_FAILED);
    fclose(ctl.out);
    ctl_done(&ctl);
}
END_TEST

TOC_CHECK_MAIN("cli", usage_errors, help_and_version, no_addresses,
               schedulers_are_found_through_the_admin,
               the_next_scheduler_when_one_is_away, exit_codes_of_statuses,
               violations_are_told_line_by_line, get_as_a_table, get_as_data,
               get_shows_what_it_can, control_characters_are_shown_escaped,
               list_goes_through_pages, list_of_nothing, buckets_in_parts,
               buckets_of_nothing, describe_tells_the_story,
               payloads_that_are_no_text, shards_by_owner,
               what_cannot_be_written_is_an_error)
