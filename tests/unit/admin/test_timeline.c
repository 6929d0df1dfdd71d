/*
 * Goal: a row and its log read as one story: in order, each attempt once, with
 * its number.
 * Method: rows and logs as the store writes them in the course of a task's
 * life, and the events that must come out.
 */
#include "admin/timeline.h"

#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "tests/support/toc_check.h"

#include <string.h>

static struct toc_arena arena;

static struct toc_task
row(enum toc_state state, int64_t claimed_ms, int64_t ended_ms)
{
    struct toc_task task = {.state = state,
                            .fire = 1,
                            .version = 9,
                            .due_ms = 5000,
                            .slot_ms = 5000,
                            .created_ms = 1000,
                            .claimed_ms = claimed_ms,
                            .called_ms = claimed_ms > 0 ? claimed_ms + 1 : 0,
                            .ended_ms = ended_ms};

    return task;
}

static struct toc_log_entry
attempt(int64_t claimed_ms, uint16_t number, enum toc_result result)
{
    return (struct toc_log_entry){.kind = TOC_LOG_KIND_ATTEMPT,
                                  .result = result,
                                  .fire = 1,
                                  .attempt = number,
                                  .claimed_ms = claimed_ms,
                                  .called_ms = claimed_ms + 1,
                                  .at_ms = claimed_ms + 5};
}

static struct toc_log_entry
command(enum toc_log_kind kind, int64_t at_ms)
{
    struct toc_log_entry entry = {.kind = kind, .fire = 1, .at_ms = at_ms};

    entry.who = TOC_STR("ann");
    return entry;
}

/* "created, attempt 1 FAILED, cancel" */
static char *
story(const struct toc_task *task, const struct toc_log_entry *log, size_t n,
      size_t bytes_max)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf text = {0};
    struct admin_story story = {task, log, n, bytes_max};
    struct toc_api_names names = {NULL, NULL};
    Toc__V1__Timeline timeline = TOC__V1__TIMELINE__INIT;

    admin_timeline_fill(&arena, &story, &names, &timeline);
    for (size_t i = 0; i < timeline.n_entries; i++) {
        const Toc__V1__TimelineEntry *entry = timeline.entries[i];
        toc_buf_printf(&text, "%s%s", i > 0 ? ", " : "", entry->event);
        if (entry->attempt != NULL)
            toc_buf_printf(
                &text, " %lu %s", (unsigned long)entry->attempt->number,
                toc_result_text((enum toc_result)entry->attempt->result));
        if (strcmp(entry->event, "left out") == 0)
            toc_buf_printf(&text, " %s", entry->detail);
    }
    return toc_arena_text(&arena, toc_buf_view(&text));
}

#define TELLS(task, log, text) \
    ck_assert_str_eq(          \
        story(&(task), (log), sizeof(log) / sizeof((log)[0]), 1000000), text)

START_TEST(never_tried)
{
    struct toc_task task = row(TOC_STATE_INIT, 0, 0);

    ck_assert_str_eq(story(&task, NULL, 0, 1000), "created");
}
END_TEST

START_TEST(done_at_the_first_attempt)
{
    struct toc_task task = row(TOC_STATE_SUCCESS, 5000, 5010);

    task.result = TOC_RESULT_DONE;
    ck_assert_str_eq(story(&task, NULL, 0, 1000), "created, attempt 1 DONE");
}
END_TEST

START_TEST(a_retry_is_told_once)
{
    struct toc_log_entry log[] = {attempt(5000, 1, TOC_RESULT_FAILED)};
    struct toc_task task = row(TOC_STATE_RETRY, 5000, 5005);

    task.result = TOC_RESULT_FAILED;
    task.attempt = 1;
    TELLS(task, log, "created, attempt 1 FAILED");
    /* The second one runs. */
    task.state = TOC_STATE_EXECUTING;
    task.claimed_ms = 6000;
    TELLS(task, log, "created, attempt 1 FAILED, attempt 2 NONE");
    task.state = TOC_STATE_SUCCESS;
    task.ended_ms = 6010;
    task.result = TOC_RESULT_DONE;
    TELLS(task, log, "created, attempt 1 FAILED, attempt 2 DONE");
}
END_TEST

START_TEST(commands_in_order_of_time)
{
    /* Noted while the attempt ran, logged before the attempt was. */
    struct toc_log_entry log[] = {
        command(TOC_LOG_KIND_RESCHEDULE, 2000),
        command(TOC_LOG_KIND_PAUSE, 2100),
        command(TOC_LOG_KIND_RESUME, 2200),
        command(TOC_LOG_KIND_RUN_NOW, 4000),
        command(TOC_LOG_KIND_CANCEL_NOTED, 5002),
    };
    struct toc_task task = row(TOC_STATE_CANCELLED, 5000, 5010);

    task.flags = TOC_FLAG_CANCEL;
    task.result = TOC_RESULT_FAILED;
    TELLS(task, log,
          "created, reschedule, pause, resume, run now, attempt 1 FAILED, "
          "cancel noted");
}
END_TEST

START_TEST(a_lost_lock)
{
    struct toc_log_entry log[] = {attempt(5000, 1, TOC_RESULT_LOST)};
    struct toc_task task = row(TOC_STATE_RETRY, 5000, 5005);

    log[0].kind = TOC_LOG_KIND_LOCK_LOST;
    task.result = TOC_RESULT_LOST;
    task.claims = 1;
    TELLS(task, log, "created, attempt 1 LOST");
}
END_TEST

START_TEST(given_back_uncalled)
{
    struct toc_log_entry log[] = {attempt(5000, 1, TOC_RESULT_FAILED)};
    struct toc_task task = row(TOC_STATE_RETRY, 6000, 5005);

    task.attempt = 1;
    task.result = TOC_RESULT_FAILED;
    TELLS(task, log, "created, attempt 1 FAILED");
}
END_TEST

START_TEST(redriven)
{
    struct toc_log_entry log[] = {attempt(5000, 1, TOC_RESULT_FAILED),
                                  attempt(6000, 2, TOC_RESULT_REJECTED),
                                  command(TOC_LOG_KIND_REDRIVE, 9000)};
    struct toc_task task = row(TOC_STATE_RETRY, 6000, 6005);

    /* A redrive logs the attempt that the task died of; the row still has it
     * until the next. */
    log[2].claimed_ms = 6000;
    log[2].result = TOC_RESULT_REJECTED;
    task.result = TOC_RESULT_REJECTED;
    TELLS(task, log, "created, attempt 1 FAILED, attempt 2 REJECTED, redrive");
    task.state = TOC_STATE_SUCCESS;
    task.result = TOC_RESULT_DONE;
    task.claimed_ms = 9010;
    task.ended_ms = 9020;
    TELLS(task, log,
          "created, attempt 1 FAILED, attempt 2 REJECTED, redrive, "
          "attempt 1 DONE");
}
END_TEST

START_TEST(redriven_after_a_lost_lock)
{
    struct toc_log_entry log[] = {attempt(5000, 1, TOC_RESULT_LOST),
                                  command(TOC_LOG_KIND_REDRIVE, 9000)};
    struct toc_task task = row(TOC_STATE_RETRY, 5000, 5005);

    log[0].kind = TOC_LOG_KIND_LOCK_LOST;
    log[1].claimed_ms = 5000;
    log[1].result = TOC_RESULT_LOST;
    task.result = TOC_RESULT_LOST;
    TELLS(task, log, "created, attempt 1 LOST, redrive");
}
END_TEST

START_TEST(very_long_ones_lose_their_oldest)
{
    struct toc_log_entry log[1000];
    struct toc_task task = row(TOC_STATE_RETRY, 0, 0);
    char *text;

    for (size_t i = 0; i < 1000; i++)
        log[i] = command(i % 2 == 0 ? TOC_LOG_KIND_PAUSE : TOC_LOG_KIND_RESUME,
                         2000 + (int64_t)i);
    text = story(&task, log, 1000, 200);
    ck_assert_msg(strncmp(text, "created, left out 99", 20) == 0, "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "older entries, "));
    ck_assert_msg(strcmp(text + strlen(text) - 6, "resume") == 0, "%s", text);
}
END_TEST

TOC_CHECK_MAIN("timeline", never_tried, done_at_the_first_attempt,
               a_retry_is_told_once, commands_in_order_of_time, a_lost_lock,
               given_back_uncalled, redriven, redriven_after_a_lost_lock,
               very_long_ones_lose_their_oldest)
