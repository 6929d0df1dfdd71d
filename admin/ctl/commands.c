#include "admin/ctl/commands.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define GROUP(name, heading, ...)                                     \
    static const struct ctl_flag name##_flags[] = {__VA_ARGS__};      \
    static const struct ctl_flag_group name = {heading, name##_flags, \
                                               COUNT(name##_flags)}

static const struct ctl_flag global_flags[] = {
    {"scheduler", 0, "HOST:PORT,...",
     "Schedulers to ask, in turn; else $TOC_SCHEDULER, else found through the "
     "admin"},
    {"admin", 0, "HOST:PORT,...", "Admins to ask, in turn; else $TOC_ADMIN"},
    {"timeout", 0, "DURATION", "For each call, 10s unless set (health: 2s)"},
    {"output", 'o', "FORMAT", "table, wide, json, yaml or id"},
    {"help", 'h', NULL, "Shows what the command can do"},
    {"version", 0, NULL, "Shows the version"},
};
const struct ctl_flag_group ctl_global_flags = {
    "Flags of every command", global_flags, COUNT(global_flags)};

GROUP(filter_group, "Filter", {"biz-type", 0, "TEXT", "Only of this biz_type"},
      {"biz-id", 0, "TEXT", "Only of this biz_id; needs --biz-type"},
      {"state", 0, "STATE,...",
       "Only in these states: init, scheduling, executing, paused, retry, "
       "success, dead, cancelled, skipped, discarded"},
      {"due-from", 0, "TIME", "Due at this time or later"},
      {"due-to", 0, "TIME", "Due before this time"},
      {"limit", 0, "N", "At most so many, 100 unless set; 0: all"});

GROUP(dead_filter_group, "Filter",
      {"biz-type", 0, "TEXT", "Only of this biz_type"},
      {"biz-id", 0, "TEXT", "Only of this biz_id; needs --biz-type"},
      {"from", 0, "TIME", "Died at this time or later"},
      {"to", 0, "TIME", "Died before this time"},
      {"dead-reason", 0, "TEXT", "Only with exactly this reason"});

GROUP(dead_list_group, "List",
      {"limit", 0, "N", "At most so many, 100 unless set; 0: all"});

GROUP(buckets_group, "Buckets",
      {"by", 0, "SIZE", "day, hour, minute (unless set) or second"},
      {"from", 0, "TIME", "From this time on; unless set: the bucket of now"},
      {"to", 0, "TIME", "Before this time; unless set: 60 buckets after from"},
      {"biz-type", 0, "TEXT", "Only of this biz_type"});

GROUP(redrive_group, "Redrive",
      {"all", 0, NULL, "All that match the filter, instead of named ones"},
      {"yes", 'y', NULL, "Does not ask"},
      {"rate", 0, "N", "At most so many a second, 500 unless set"},
      {"reason", 0, "TEXT", "For the timeline"});

GROUP(when_group, "When",
      {"at", 0, "TIME", "RFC 3339, such as 2030-01-31T12:00:00Z"},
      {"in", 0, "DURATION", "From now, such as 30m"});

GROUP(submit_group, "Task",
      {"biz-type", 0, "TEXT", "Kind of business; or give a KEY"},
      {"biz-id", 0, "TEXT", "Whose timeout; none: a random one"},
      {"name", 0, "TEXT", "Which timeout of that business id"},
      {"target", 0, "URL", "grpc://host:port[/package.Service/Method]"},
      {"batch-max", 0, "N", "Fires that may go in one call, up to 256"},
      {"payload", 0, "TEXT", "Handed to the business as it is"},
      {"payload-file", 0, "FILE", "The same from a file; -: standard input"},
      {"content-type", 0, "TEXT", "Of the payload"},
      {"header", 0, "NAME=VALUE", "Sent with the call; may be repeated"},
      {"priority", 0, "WORD", "core, normal or low"},
      {"delivery", 0, "WORD", "at-least-once or at-most-once"},
      {"timeout-call", 0, "DURATION", "For the business to answer"},
      {"retries", 0, "N", "Retries after the first attempt"},
      {"ladder", 0, "DURATION,...", "Delays before the retries"},
      {"backoff", 0, "FIRST,CAP[,FACTOR]", "Growing delays instead"},
      {"jitter", 0, "PERCENT", "Takes up to this share off each delay"},
      {"on-conflict", 0, "WORD", "reject, keep or replace"});

GROUP(submit_how_group, "How",
      {"file", 'f', "FILE",
       "Tasks as JSON, one object or an array of them; -: standard input"},
      {"validate-only", 0, NULL, "Checks everything, stores nothing"});

GROUP(command_group, "Command",
      {"etag", 0, "ETAG", "Only if this is still the task's etag"},
      {"reason", 0, "TEXT", "For the timeline"},
      {"validate-only", 0, NULL, "Answers as it would, changes nothing"});

GROUP(cancel_group, "Cancel",
      {"all", 0, NULL, "REF is biz_type/biz_id: all its live tasks"});

GROUP(health_group, "Health",
      {"service", 0, "NAME", "Of this service; none: of the whole server"});

GROUP(help_group, "Help",
      {"markdown", 0, NULL, "Everything, as docs/TOCCTL.md has it"});

#define GROUPS(...) .groups = {__VA_ARGS__}

const struct ctl_command ctl_commands[] = {
    {.name = "submit",
     .args = "[KEY]",
     .args_max = 1,
     .summary = "Stores a task",
     .detail =
         "Stores one task, named by KEY or by --biz-type, --biz-id and "
         "--name. Without a biz_id a random one is made. Once it says "
         "\"created\" the task is durable. The same key with the same "
         "content again is \"there before\", not an error.\n\n"
         "With -f, reads tasks as JSON: each object a "
         "toc.v1.SubmitRequest by the proto3 JSON mapping, such as "
         "{\"key\": {\"bizType\": \"order\", \"bizId\": \"42\"}, \"delay\": "
         "\"1800s\", \"target\": {\"url\": \"grpc://orders:7000\"}}. An "
         "unknown "
         "field is an error that names its path.",
     .example =
         "tocctl submit order/42/pay --in 30m --target grpc://orders:7000 "
         "--payload '{\"order\":42}'\n"
         "tocctl submit order/43 --at 2030-01-31T12:00:00+08:00 --target "
         "grpc://orders:7000 --ladder 1s,5s,1m --retries 5\n"
         "tocctl submit -f tasks.json --validate-only",
     GROUPS(&submit_group, &when_group, &submit_how_group),
     .run = ctl_cmd_submit},
    {.name = "get",
     .args = "REF...",
     .args_min = 1,
     .args_max = CTL_ARGS_MANY,
     .summary = "Shows tasks",
     .detail = "A REF is a task id (26 letters and digits) or a key, "
               "biz_type/biz_id or biz_type/biz_id/name; inside a part write / "
               "as %2F and % as %25. `get task REF...` is the same; `get "
               "tasks`, `get dead`, `get buckets`, `get shards` and `get "
               "nodes` are list, dead list, buckets, shards and nodes.",
     .example = "tocctl get order/42/pay\ntocctl get order/42/pay -o json",
     .run = ctl_cmd_get},
    {.name = "list",
     .args = "",
     .summary = "Lists tasks by a filter",
     .detail = "Reads page after page up to --limit. SCHEDULING is what is due "
               "within 10 s.",
     .example = "tocctl list --biz-type order --state retry,dead\n"
                "tocctl list --due-to 2030-01-31T12:00:00Z --limit 0 -o id",
     GROUPS(&filter_group),
     .run = ctl_cmd_list},
    {.name = "describe",
     .args = "REF...",
     .args_min = 1,
     .args_max = CTL_ARGS_MANY,
     .summary = "Shows all of a task and what happened to it",
     .example = "tocctl describe order/42/pay",
     .run = ctl_cmd_describe},
    {.name = "cancel",
     .args = "REF...",
     .args_min = 1,
     .args_max = CTL_ARGS_MANY,
     .summary = "Cancels tasks",
     .detail = "Cancelled means that the business is not called. Too late "
               "means that the call has begun: no further attempt follows it. "
               "There is no third outcome.",
     .example = "tocctl cancel order/42/pay --reason 'paid by phone'\n"
                "tocctl cancel --all order/42",
     GROUPS(&command_group, &cancel_group),
     .run = ctl_cmd_cancel},
    {.name = "reschedule",
     .args = "REF...",
     .args_min = 1,
     .args_max = CTL_ARGS_MANY,
     .summary = "Gives tasks another due time",
     .detail = "A paused task stays paused.",
     .example = "tocctl reschedule order/42/pay --in 2h",
     GROUPS(&when_group, &command_group),
     .run = ctl_cmd_reschedule},
    {.name = "pause",
     .args = "REF...",
     .args_min = 1,
     .args_max = CTL_ARGS_MANY,
     .summary = "Holds tasks until they are resumed",
     GROUPS(&command_group),
     .run = ctl_cmd_pause},
    {.name = "resume",
     .args = "REF...",
     .args_min = 1,
     .args_max = CTL_ARGS_MANY,
     .summary = "Lets paused tasks go on",
     .detail = "At the due time, or at once when that has passed.",
     GROUPS(&command_group),
     .run = ctl_cmd_resume},
    {.name = "run-now",
     .args = "REF...",
     .args_min = 1,
     .args_max = CTL_ARGS_MANY,
     .summary = "Makes tasks due now",
     .detail = "A paused task is resumed.",
     GROUPS(&command_group),
     .run = ctl_cmd_run_now},
    {.name = "dead list",
     .args = "",
     .summary = "Lists dead letters, newest first",
     .example = "tocctl dead list --biz-type order --from "
                "2030-01-31T00:00:00Z",
     GROUPS(&dead_filter_group, &dead_list_group),
     .run = ctl_cmd_dead_list},
    {.name = "dead redrive",
     .args = "[REF...]",
     .args_max = CTL_ARGS_MANY,
     .summary = "Makes dead letters due again",
     .detail = "Due now, with their attempts counted anew. Names tasks, or "
               "--all with a filter, which counts first, asks, and then works "
               "at --rate.",
     .example = "tocctl dead redrive order/42/pay\n"
                "tocctl dead redrive --all --biz-type order --rate 50",
     GROUPS(&redrive_group, &dead_filter_group),
     .run = ctl_cmd_dead_redrive},
    {.name = "buckets",
     .args = "",
     .summary = "Shows how many tasks lie in each minute, hour or day",
     .detail = "By biz_type and state; what holds nothing is left out. A "
               "bucket's name is its time in UTC: 20251218 a day, 2025121810 "
               "an hour, 202512181030 a minute, 20251218103059 a second. A "
               "task lies at its due time (the next attempt's, the last one's "
               "when it ended). Paused tasks, and those stored more than 34 "
               "days ahead until the day before, lie in none. Up to 10,000 "
               "buckets at once.",
     .example = "tocctl buckets\n"
                "tocctl buckets --by day --from 2030-01-01T00:00:00Z --to "
                "2030-02-01T00:00:00Z --biz-type order",
     GROUPS(&buckets_group),
     .run = ctl_cmd_buckets},
    {.name = "shards",
     .args = "",
     .summary = "Shows who owns the shards",
     .detail = "By owner and state; -o wide lists all 256.",
     .run = ctl_cmd_shards},
    {.name = "nodes",
     .args = "",
     .summary = "Shows the processes that are there",
     .detail = "Of a scheduler also how many shards it owns and its load: "
               "percent of what it can do, over the last 10 s.",
     .run = ctl_cmd_nodes},
    {.name = "health",
     .args = "HOST:PORT",
     .args_min = 1,
     .args_max = 1,
     .summary = "Asks one process whether it is serving",
     .detail = "For probes: needs nothing but the address, ends with 0 only "
               "when the answer is SERVING.",
     .example = "tocctl health 127.0.0.1:7000",
     GROUPS(&health_group),
     .run = ctl_cmd_health},
    {.name = "version",
     .args = "",
     .summary = "Shows the version",
     .run = ctl_cmd_version},
    {.name = "help",
     .args = "[COMMAND]",
     .args_max = 2,
     .summary = "Shows what a command can do",
     GROUPS(&help_group),
     .run = ctl_cmd_help},
    {.name = "completion",
     .args = "bash",
     .args_min = 1,
     .args_max = 1,
     .summary = "Prints a script that completes commands and flags",
     .example = "source <(tocctl completion bash)",
     .run = ctl_cmd_completion},
};
const size_t ctl_n_commands = COUNT(ctl_commands);

const struct ctl_alias ctl_aliases[] = {
    {"get task", "get"},        {"get tasks", "list"},
    {"get dead", "dead list"},  {"get shards", "shards"},
    {"get nodes", "nodes"},     {"describe task", "describe"},
    {"get buckets", "buckets"},
};
const size_t ctl_n_aliases = COUNT(ctl_aliases);

static const struct ctl_command *
by_name(const char *name)
{
    for (size_t i = 0; i < ctl_n_commands; i++)
        if (strcmp(ctl_commands[i].name, name) == 0)
            return &ctl_commands[i];
    return NULL;
}

static const struct ctl_command *
by_name_or_alias(const char *name)
{
    for (size_t i = 0; i < ctl_n_aliases; i++)
        if (strcmp(ctl_aliases[i].words, name) == 0)
            return by_name(ctl_aliases[i].command);
    return by_name(name);
}

const struct ctl_command *
ctl_command_find(const char *const *words, size_t n, size_t *ret_words)
{
    const struct ctl_command *command = NULL;
    char two[64];

    if (n >= 2) {
        toc_format(two, sizeof two, "%s %s", words[0], words[1]);
        command = by_name_or_alias(two);
        *ret_words = 2;
    }
    if (command == NULL && n >= 1) {
        command = by_name_or_alias(words[0]);
        *ret_words = 1;
    }
    return command;
}
