/*
 * Goal: the commands that change something send what they should, say what came
 * of it, and end with the documented code.
 * Method: command lines run inside the test against services whose answers the
 * test writes; requests, both streams and exit codes are looked at.
 */
#include "tests/unit/ctl/cli.h"

/* ---- commands ---- */

START_TEST(outcomes_of_commands)
{
    static const struct {
        Toc__V1__Outcome outcome;
        int code;
        const char *text;
    } all[] = {
        {TOC__V1__OUTCOME__OUTCOME_APPLIED, 0, "order/42/pay: paused, due "},
        {TOC__V1__OUTCOME__OUTCOME_ALREADY, 0, "was paused before"},
        {TOC__V1__OUTCOME__OUTCOME_TOO_LATE, 4, "too late: the call has begun"},
        {TOC__V1__OUTCOME__OUTCOME_ENDED, 4, "ended before: INIT"},
        {(Toc__V1__Outcome)99, 4, "does not know"},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        Toc__V1__CommandResult result = TOC__V1__COMMAND_RESULT__INIT;
        const Toc__V1__PauseRequest *request;
        start();
        result.outcome = all[i].outcome;
        result.task = &task;
        answer(TOC_OK, &result.base);
        run(all[i].code, "pause", "order/42/pay", "--etag", "7", "--reason",
            "-why");
        has(cli.out, all[i].text);
        request = cli.sent[0].request;
        ck_assert_str_eq(request->etag, "7");
        ck_assert_str_eq(request->reason, "-why");
        ck_assert(!request->validate_only);
    }
}
END_TEST

START_TEST(cancel_one_and_all)
{
    Toc__V1__CancelResponse response = TOC__V1__CANCEL_RESPONSE__INIT;
    Toc__V1__CommandResult good = TOC__V1__COMMAND_RESULT__INIT;
    Toc__V1__CommandResult late = TOC__V1__COMMAND_RESULT__INIT;
    Toc__V1__CommandResult *results[] = {&good, &late};
    const Toc__V1__CancelRequest *request;

    start();
    good.outcome = TOC__V1__OUTCOME__OUTCOME_APPLIED;
    late.outcome = TOC__V1__OUTCOME__OUTCOME_TOO_LATE;
    good.task = late.task = &task;
    response.results = results;
    response.n_results = 1;
    answer(TOC_OK, &response.base);
    run(0, "cancel", ID);
    ck_assert_str_eq(cli.out, "order/42/pay: cancelled\n");
    request = cli.sent[0].request;
    ck_assert_str_eq(request->task_id, ID);
    response.n_results = 2;
    answer(TOC_OK, &response.base);
    run(4, "cancel", "--all", "order/42");
    has(cli.out, "cancelled\norder/42/pay: too late: the call has begun; no "
                 "further attempt follows\n");
    request = cli.sent[1].request;
    ck_assert_int_eq(request->which_case, TOC__V1__CANCEL_REQUEST__WHICH_BIZ);
    ck_assert_str_eq(request->biz->biz_id, "42");
    response.n_results = 0;
    answer(TOC_OK, &response.base);
    run(0, "cancel", "--all", "order/42");
    has(cli.err, "order/42: no live tasks");
    run(2, "cancel", "--all", "order/42/pay");
    run(2, "cancel", "--all", ID);
    /* Nothing is sent when one of the names is wrong. */
    run(2, "cancel", "order/42", "order");
    ck_assert_uint_eq(cli.n_sent, 3);
}
END_TEST

START_TEST(reschedule_needs_one_time)
{
    Toc__V1__CommandResult result = TOC__V1__COMMAND_RESULT__INIT;
    const Toc__V1__RescheduleRequest *request;

    start();
    run(2, "reschedule", "order/42");
    has(cli.err, "--at or --in is missing");
    run(2, "reschedule", "order/42", "--in", "1h", "--at",
        "2030-01-31T12:00:00Z");
    has(cli.err, "exclude each other");
    run(2, "reschedule", "order/42", "--in", "soon");
    result.outcome = TOC__V1__OUTCOME__OUTCOME_APPLIED;
    result.task = &task;
    answer(TOC_OK, &result.base);
    answer(TOC_OK, &result.base);
    run(0, "reschedule", "order/42", "--in", "1h30m", "--validate-only");
    has(cli.out, "would be rescheduled, due 2030");
    request = cli.sent[0].request;
    ck_assert_int_eq(request->when_case,
                     TOC__V1__RESCHEDULE_REQUEST__WHEN_DELAY);
    ck_assert_int_eq(request->delay->seconds, 5400);
    ck_assert(request->validate_only);
    run(0, "reschedule", "order/42", "--at", "2030-01-31T12:00:00.5+08:00");
    request = cli.sent[1].request;
    ck_assert_int_eq(request->due_time->nanos, 500000000);
    ck_assert_int_eq(request->due_time->seconds % 86400, 4 * 3600);
}
END_TEST

/* ---- submit ---- */

START_TEST(submit_by_flags)
{
    Toc__V1__SubmitResponse response = TOC__V1__SUBMIT_RESPONSE__INIT;
    const Toc__V1__SubmitRequest *request;

    start();
    response.task = &task;
    response.created = 1;
    answer(TOC_OK, &response.base);
    cli.in = "from stdin";
    run(0, "submit", "order/42/pay", "--in", "30m", "--target",
        "grpc://orders:7000", "--batch-max", "16", "--payload-file", "-",
        "--content-type", "text/plain", "--header", "a=b=c", "--header",
        "d=", "--priority", "core", "--delivery", "at-most-once",
        "--timeout-call", "250ms", "--retries", "3", "--ladder", "1s,2s,1m",
        "--jitter", "20", "--on-conflict", "keep");
    ck_assert_str_eq(cli.out, "order/42/pay: created, task " ID
                              ", due 2030-01-01T00:04:12.000Z (in 4m12s)\n");
    request = cli.sent[0].request;
    ck_assert_str_eq(request->key->biz_id, "42");
    ck_assert_int_eq(request->delay->seconds, 1800);
    ck_assert_str_eq(request->target->url, "grpc://orders:7000");
    ck_assert_uint_eq(request->target->batch_max, 16);
    ck_assert_uint_eq(request->payload.len, 10);
    ck_assert_mem_eq(request->payload.data, "from stdin", 10);
    ck_assert_uint_eq(request->n_headers, 2);
    ck_assert_str_eq(request->headers[0]->value, "b=c");
    ck_assert_str_eq(request->headers[1]->value, "");
    ck_assert_int_eq(request->priority, TOC__V1__PRIORITY__PRIORITY_CORE);
    ck_assert_int_eq(
        request->delivery_guarantee,
        TOC__V1__DELIVERY_GUARANTEE__DELIVERY_GUARANTEE_AT_MOST_ONCE);
    ck_assert_int_eq(request->call_timeout->nanos, 250000000);
    ck_assert_uint_eq(request->retry_policy->max_retries->value, 3);
    ck_assert_uint_eq(request->retry_policy->n_ladder, 3);
    ck_assert_int_eq(request->retry_policy->ladder[2]->seconds, 60);
    ck_assert_uint_eq(request->retry_policy->jitter_percent, 20);
    ck_assert_int_eq(request->on_conflict,
                     TOC__V1__ON_CONFLICT__ON_CONFLICT_KEEP);
}
END_TEST

START_TEST(submit_without_an_id_is_safe_to_repeat)
{
    Toc__V1__SubmitResponse response = TOC__V1__SUBMIT_RESPONSE__INIT;
    const Toc__V1__SubmitRequest *first, *second;

    start();
    response.task = &task;
    answer(TOC_UNAVAILABLE, NULL);
    answer(TOC_OK, &response.base);
    run(0, "submit", "--biz-type", "order", "--at", "2030-01-31T12:00:00Z",
        "--target", "grpc://a:1", "--backoff", "1s,10m,1.5");
    has(cli.out, "order/42/pay: there before, task " ID);
    first = cli.sent[0].request;
    second = cli.sent[1].request;
    ck_assert_uint_eq(strlen(first->key->biz_id), 32);
    ck_assert_str_eq(first->key->biz_id, second->key->biz_id);
    ck_assert_ptr_null(first->retry_policy->max_retries);
    ck_assert(first->retry_policy->exponential->factor > 1.4);
    ck_assert_int_eq(first->retry_policy->exponential->cap->seconds, 600);
}
END_TEST

START_TEST(submit_refuses_bad_flags)
{
    start();
    run(2, "submit", "--in", "1s", "--target", "grpc://a:1");
    has(cli.err, "no key");
    run(2, "submit", "order/1", "--biz-type", "x", "--in", "1s");
    has(cli.err, "exclude each other");
    run(2, "submit", "order/1", "--in", "1s");
    has(cli.err, "--target is missing");
    run(2, "submit", "order/1", "--target", "grpc://a:1");
    has(cli.err, "no time");
    run(2, "submit", "order/1", "--in", "1s", "--target", "t", "--ladder",
        "1s,,2s");
    has(cli.err, "--ladder 1s,,2s: must be durations");
    run(2, "submit", "order/1", "--in", "1s", "--target", "t", "--backoff",
        "1s");
    has(cli.err, "FIRST,CAP[,FACTOR]");
    run(2, "submit", "order/1", "--in", "1s", "--target", "t", "--backoff",
        "1s,2s,3,4");
    run(2, "submit", "order/1", "--in", "1s", "--target", "t", "--header", "x");
    has(cli.err, "must be NAME=VALUE");
    run(2, "submit", "order/1", "--in", "1s", "--target", "t", "--priority",
        "urgent");
    has(cli.err, "must be one of core, normal, low");
    run(2, "submit", "order/1", "--in", "1s", "--target", "t", "--payload", "a",
        "--payload-file", "-");
    run(2, "submit", "order/1", "--in", "1s", "--target", "t", "--payload-file",
        "/nowhere/at/all");
    has(cli.err, "/nowhere/at/all: No such file");
    run(2, "submit", "-f", "-", "order/1");
    run(2, "submit", "-f", "-", "--in", "1s");
    has(cli.err, "--in and --file exclude each other");
    ck_assert_uint_eq(cli.n_sent, 0);
}
END_TEST

START_TEST(submit_from_a_file)
{
    Toc__V1__BatchSubmitResponse batch = TOC__V1__BATCH_SUBMIT_RESPONSE__INIT;
    Toc__V1__BatchSubmitResult results[2];
    Toc__V1__BatchSubmitResult *refs[] = {&results[0], &results[1]};
    Toc__V1__SubmitResponse response = TOC__V1__SUBMIT_RESPONSE__INIT;
    Google__Rpc__Status error = GOOGLE__RPC__STATUS__INIT;
    const Toc__V1__BatchSubmitRequest *request;

    start();
    toc__v1__batch_submit_result__init(&results[0]);
    toc__v1__batch_submit_result__init(&results[1]);
    response.task = &task;
    response.created = 1;
    results[0].response = &response;
    error.code = TOC_EXISTS;
    error.message = "the key is taken";
    results[1].error = &error;
    batch.results = refs;
    batch.n_results = 2;
    answer(TOC_OK, &batch.base);
    cli.in = "[{\"key\":{\"bizType\":\"a\",\"bizId\":\"1\"},\"delay\":\"1s\"},"
             " {\"key\":{\"bizType\":\"a\"},\"delay\":\"2s\"}]";
    run(4, "submit", "-f", "-", "--validate-only");
    request = cli.sent[0].request;
    ck_assert_uint_eq(request->n_items, 2);
    ck_assert(request->items[0]->validate_only);
    ck_assert_uint_eq(strlen(request->items[1]->key->biz_id), 32);
    has(cli.out, "order/42/pay: valid, not stored, task");
    has(cli.err, ": the key is taken\n");
    has(cli.err, "1 of 2 valid, 1 failed");

    cli.in = "[{\"key\":{\"bizType\":\"a\"}},{\"targett\":{}}]";
    run(2, "submit", "-f", "-");
    has(cli.err, "error: standard input: [1]: targett: unknown field");
    cli.in = "[]";
    run(2, "submit", "-f", "-");
    has(cli.err, "no tasks");
    cli.in = "{\"key\":";
    run(2, "submit", "-f", "-");
    has(cli.err, "standard input: not JSON: line 1");
    ck_assert_uint_eq(cli.n_sent, 1);

    answer(TOC_OK, &response.base);
    cli.in = "{\"key\":{\"bizType\":\"a\",\"bizId\":\"1\"},\"delay\":\"1s\"}";
    run(0, "submit", "-f", "-", "-o", "id");
    ck_assert_str_eq(cli.sent[1].method, "Submit");
    ck_assert_str_eq(cli.out, ID "\n");
}
END_TEST

/* ---- dead letters, cluster ---- */

static void
redrive_answer(Toc__V1__RedriveDeadResponse *response, size_t n,
               Google__Rpc__Status *error)
{
    toc__v1__redrive_dead_response__init(response);
    response->n_results = n;
    response->results =
        toc_arena_calloc(&cli.arena, n, sizeof *response->results);
    for (size_t i = 0; i < n; i++) {
        Toc__V1__RedriveResult *result =
            toc_arena_alloc(&cli.arena, sizeof *result);
        toc__v1__redrive_result__init(result);
        result->task_id = ID;
        result->error = i == n - 1 ? error : NULL;
        response->results[i] = result;
    }
}

START_TEST(redrive_by_name)
{
    Toc__V1__RedriveDeadResponse response;
    Google__Rpc__Status error = GOOGLE__RPC__STATUS__INIT;
    const Toc__V1__RedriveDeadRequest *request;

    start();
    error.code = TOC_PRECONDITION;
    error.message = "its key holds a newer task";
    redrive_answer(&response, 2, &error);
    answer(TOC_OK, &task.base); /* the key's task */
    answer(TOC_OK, &response.base);
    run(4, "dead", "redrive", "order/42/pay", ID, "--reason", "fixed");
    request = cli.sent[1].request;
    ck_assert_uint_eq(request->n_task_ids, 2);
    ck_assert_str_eq(request->task_ids[0], ID);
    ck_assert_str_eq(request->reason, "fixed");
    has(cli.out, ID ": redriven\n");
    has(cli.err, "error: " ID ": its key holds a newer task");
    run(2, "dead", "redrive");
    run(2, "dead", "redrive", ID, "--all");
    has(cli.err, "give either tasks or --all");
}
END_TEST

START_TEST(redrive_all_asks_first_and_keeps_the_rate)
{
    Toc__V1__DeadLetter letter = TOC__V1__DEAD_LETTER__INIT;
    Toc__V1__DeadLetter *letters[150];
    Toc__V1__ListDeadResponse page = TOC__V1__LIST_DEAD_RESPONSE__INIT;
    Toc__V1__RedriveDeadResponse hundred, fifty;
    Google__Rpc__Status gone = GOOGLE__RPC__STATUS__INIT;
    const Toc__V1__ListDeadRequest *request;

    start();
    letter.task = &task;
    for (size_t i = 0; i < 150; i++)
        letters[i] = &letter;
    page.dead = letters;
    page.n_dead = 150;
    gone.code = TOC_NOT_FOUND;
    redrive_answer(&hundred, 100, NULL);
    redrive_answer(&fifty, 50, &gone);
    answer(TOC_OK, &page.base);
    cli.in = "n\n";
    run(1, "dead", "redrive", "--all", "--biz-type", "order", "--dead-reason",
        "bad target");
    has(cli.err, "Make 150 dead letters due now? [y/N]");
    has(cli.err, "not confirmed, nothing was changed");
    request = cli.sent[0].request;
    ck_assert_str_eq(request->filter->biz_type, "order");
    ck_assert_str_eq(request->filter->reason, "bad target");
    answer(TOC_OK, &page.base);
    run(1, "dead", "redrive", "--all"); /* nobody there to say yes */
    ck_assert_uint_eq(cli.n_sent, 2);

    answer(TOC_OK, &page.base);
    answer(TOC_OK, &hundred.base);
    answer(TOC_OK, &fifty.base);
    run(0, "dead", "redrive", "--all", "-y", "--rate", "50");
    has(cli.err, "149 redriven, 1 gone before, 0 failed");
    /* 100 done at 50 a second: the rest not before 2 s. */
    ck_assert_int_eq(cli.slept_until.ns - toc_clock_mono(&cli.clock.clock).ns,
                     2000 * TOC_NS_PER_MS);
}
END_TEST

TOC_CHECK_MAIN("changes", outcomes_of_commands, cancel_one_and_all,
               reschedule_needs_one_time, submit_by_flags,
               submit_without_an_id_is_safe_to_repeat, submit_refuses_bad_flags,
               submit_from_a_file, redrive_by_name,
               redrive_all_asks_first_and_keeps_the_rate)
