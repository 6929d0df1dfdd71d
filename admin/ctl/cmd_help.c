#include "admin/ctl/commands.h"

#include "admin/ctl/text.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"

#include <string.h>

#define WIDTH 78

static const char *const intro =
    "tocctl speaks to TOC, the Timeout Center: stores tasks, looks at them, "
    "changes them, and shows how the cluster is.";

/* Breaks text at spaces; keeps its own line breaks. */
static void
wrap(struct toc_buf *out, const char *text, size_t indent)
{
    struct toc_str lines = toc_str_of(text), line, word;

    while (toc_str_next(&lines, '\n', &line)) {
        size_t used = indent;
        toc_buf_printf(out, "%*s", (int)(line.len > 0 ? indent : 0), "");
        while (toc_str_next(&line, ' ', &word)) {
            if (used > indent && used + 1 + word.len > WIDTH) {
                toc_buf_printf(out, "\n%*s", (int)indent, "");
                used = indent;
            } else if (used > indent) {
                toc_buf_char(out, ' ');
                used++;
            }
            toc_buf_str(out, word);
            used += word.len;
        }
        toc_buf_char(out, '\n');
    }
}

static void
add_flag_name(struct toc_buf *out, const struct ctl_flag *flag)
{
    if (flag->letter != '\0')
        toc_buf_printf(out, "-%c, ", flag->letter);
    toc_buf_printf(out, "--%s", flag->name);
    if (flag->value != NULL)
        toc_buf_printf(out, " %s", flag->value);
}

static void
help_flags(struct toc_buf *out, const struct ctl_flag_group *group)
{
    toc_buf_printf(out, "\n%s:\n", group->title);
    for (size_t i = 0; i < group->n; i++) {
        toc_buf_text(out, "  ");
        add_flag_name(out, &group->flags[i]);
        toc_buf_char(out, '\n');
        wrap(out, group->flags[i].doc, 6);
    }
}

static void
help_exits(struct toc_buf *out)
{
    toc_buf_text(out, "\nIt ends with:\n");
#define X(name, number, text) toc_buf_printf(out, "  %d  %s\n", number, text);
    CTL_EXIT_MAP(X)
#undef X
}

static void
add_usage(struct toc_buf *out, const struct ctl_command *command)
{
    toc_buf_printf(out, "tocctl %s%s%s [flags]", command->name,
                   command->args[0] != '\0' ? " " : "", command->args);
}

static void
print(struct ctl *ctl, const struct toc_buf *out)
{
    fwrite(out->data, 1, out->len, ctl->out);
}

enum ctl_exit
ctl_help_command(struct ctl *ctl, const struct ctl_command *command)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf out = {0};

    toc_buf_printf(&out, "%s.\n\nUsage:\n  ", command->summary);
    add_usage(&out, command);
    toc_buf_char(&out, '\n');
    if (command->detail != NULL) {
        toc_buf_char(&out, '\n');
        wrap(&out, command->detail, 0);
    }
    for (size_t i = 0; command->groups[i] != NULL; i++)
        help_flags(&out, command->groups[i]);
    help_flags(&out, &ctl_global_flags);
    if (command->example != NULL) {
        struct toc_str lines = toc_str_of(command->example), line;
        toc_buf_text(&out, "\nExamples:\n");
        while (toc_str_next(&lines, '\n', &line))
            toc_buf_printf(&out, "  %.*s\n", (int)line.len, line.ptr);
    }
    print(ctl, &out);
    return CTL_OK;
}

enum ctl_exit
ctl_help_overview(struct ctl *ctl)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf out = {0};

    wrap(&out, intro, 0);
    toc_buf_text(&out, "\nUsage:\n  tocctl COMMAND [flags]\n\nCommands:\n");
    for (size_t i = 0; i < ctl_n_commands; i++)
        toc_buf_printf(&out, "  %-14s%s\n", ctl_commands[i].name,
                       ctl_commands[i].summary);
    help_flags(&out, &ctl_global_flags);
    help_exits(&out);
    toc_buf_text(&out, "\n`tocctl help COMMAND` shows more.\n");
    print(ctl, &out);
    return CTL_OK;
}

/* ---- docs/TOCCTL.md ------------------------------------------------------ */

/* | must not end a table's cell. */
static void
add_cell(struct toc_buf *out, const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '|')
            toc_buf_char(out, '\\');
        toc_buf_char(out, *at);
    }
}

static void
markdown_flags(struct toc_buf *out, const struct ctl_flag_group *group)
{
    toc_buf_printf(out, "\n%s:\n\n| | |\n|---|---|\n", group->title);
    for (size_t i = 0; i < group->n; i++) {
        toc_buf_text(out, "| `");
        add_flag_name(out, &group->flags[i]);
        toc_buf_text(out, "` | ");
        add_cell(out, group->flags[i].doc);
        toc_buf_text(out, " |\n");
    }
}

static void
markdown_command(struct toc_buf *out, const struct ctl_command *command)
{
    toc_buf_printf(out, "\n## %s\n\n%s.\n\n    ", command->name,
                   command->summary);
    add_usage(out, command);
    toc_buf_char(out, '\n');
    if (command->detail != NULL) {
        toc_buf_char(out, '\n');
        wrap(out, command->detail, 0);
    }
    for (size_t i = 0; command->groups[i] != NULL; i++)
        markdown_flags(out, command->groups[i]);
    if (command->example != NULL) {
        struct toc_str lines = toc_str_of(command->example), line;
        toc_buf_text(out, "\nExamples:\n\n");
        while (toc_str_next(&lines, '\n', &line))
            toc_buf_printf(out, "    %.*s\n", (int)line.len, line.ptr);
    }
}

static const char *const conventions =
    "A REF names a task: its id, 26 letters and digits, or its key, "
    "biz_type/biz_id or biz_type/biz_id/name. Inside a part write / as %2F and "
    "% as %25; what tocctl prints can be given back to it.\n\n"
    "A TIME is RFC 3339, such as 2030-01-31T12:00:00.250+08:00. A DURATION is "
    "made of numbers with units, such as 250ms, 90s, 1h30m or 2d. Times are "
    "shown in UTC, with how far they are from now.\n\n"
    "Schedulers and admins are tried in turn while they are unavailable. "
    "Without --scheduler and TOC_SCHEDULER, the admin is asked which "
    "schedulers are up.\n\n"
    "json and yaml follow the proto3 JSON mapping of toc.v1; lists are an "
    "object with one array (`tasks`, `dead`, `shards`, `nodes`). id prints one "
    "id a line, for scripts. Control characters in what others wrote are shown "
    "escaped.\n\n"
    "An error is a line `error: ...` on standard error, then the fields that "
    "broke a rule, then often a `hint: ...`.";

static void
markdown(struct toc_buf *out)
{
    toc_buf_text(out, "# tocctl\n\n<!-- Written by `tocctl help --markdown`; "
                      "a test compares. -->\n\n");
    wrap(out, intro, 0);
    toc_buf_text(out, "\n    tocctl COMMAND [flags]\n\n");
    wrap(out, conventions, 0);
    toc_buf_text(out, "\n| It ends with | |\n|---|---|\n");
#define X(name, number, text) \
    toc_buf_printf(out, "| %d | %s |\n", number, text);
    CTL_EXIT_MAP(X)
#undef X
    markdown_flags(out, &ctl_global_flags);
    for (size_t i = 0; i < ctl_n_commands; i++)
        markdown_command(out, &ctl_commands[i]);
    toc_buf_text(out, "\n## Other ways to say it\n\n| | |\n|---|---|\n");
    for (size_t i = 0; i < ctl_n_aliases; i++)
        toc_buf_printf(out, "| `%s` | `%s` |\n", ctl_aliases[i].words,
                       ctl_aliases[i].command);
}

enum ctl_exit
ctl_cmd_help(struct ctl *ctl)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf out = {0};
    const struct ctl_command *command;
    size_t taken = 0;

    if (ctl_has(ctl, "markdown")) {
        markdown(&out);
        print(ctl, &out);
        return CTL_OK;
    }
    if (ctl->n_args == 0)
        return ctl_help_overview(ctl);
    command = ctl_command_find(ctl->args, ctl->n_args, &taken);
    if (command == NULL || taken < ctl->n_args)
        return ctl_fail(ctl, CTL_USAGE, "tocctl help", "unknown command: %s",
                        ctl_safe(&ctl->arena, toc_str_of(ctl->args[0])));
    return ctl_help_command(ctl, command);
}

enum ctl_exit
ctl_cmd_version(struct ctl *ctl)
{
    fprintf(ctl->out, "tocctl %s (API toc.v1)\n", TOC_VERSION);
    return CTL_OK;
}

/* ---- completion ---- */

static void
completion_flags(struct toc_buf *out, const struct ctl_flag_group *group)
{
    for (size_t i = 0; i < group->n; i++)
        toc_buf_printf(out, " --%s", group->flags[i].name);
}

/* The script knows each command's flags, and that the second word of some
 * commands is one of a few. */
enum ctl_exit
ctl_cmd_completion(struct ctl *ctl)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf out = {0};

    if (strcmp(ctl->args[0], "bash") != 0)
        return ctl_fail(ctl, CTL_USAGE, NULL, "completion: only for bash");
    toc_buf_text(&out,
                 "# tocctl: completion for bash\n"
                 "_tocctl()\n{\n"
                 "    local cur=${COMP_WORDS[COMP_CWORD]} flags i word\n"
                 "    local -a words=()\n"
                 "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                 "        word=${COMP_WORDS[i]}\n"
                 "        [[ $word == -* ]] || words+=(\"$word\")\n"
                 "    done\n"
                 "    if ((${#words[@]} == 0)) && [[ $cur != -* ]]; then\n"
                 "        COMPREPLY=($(compgen -W '");
    for (size_t i = 0; i < ctl_n_commands; i++) {
        struct toc_str rest = toc_str_of(ctl_commands[i].name), word;
        (void)toc_str_next(&rest, ' ', &word);
        toc_buf_printf(&out, "%.*s ", (int)word.len, word.ptr);
    }
    toc_buf_text(&out, "' -- \"$cur\"))\n        return\n    fi\n"
                       "    case \"${words[0]} ${words[1]}\" in\n");
    for (size_t i = 0; i < ctl_n_commands; i++) {
        const struct ctl_command *command = &ctl_commands[i];
        bool two = strchr(command->name, ' ') != NULL;
        toc_buf_printf(&out, "    '%s'%s) flags='", command->name,
                       two ? "" : "' '*");
        for (size_t g = 0; command->groups[g] != NULL; g++)
            completion_flags(&out, command->groups[g]);
        toc_buf_text(&out, "' ;;\n");
    }
    toc_buf_text(&out, "    esac\n"
                       "    if [[ ${words[0]} == dead && $cur != -* ]] &&\n"
                       "        ((${#words[@]} == 1)); then\n"
                       "        flags='list redrive'\n"
                       "    else\n        flags+='");
    completion_flags(&out, &ctl_global_flags);
    toc_buf_text(&out, "'\n    fi\n"
                       "    COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\"))\n"
                       "}\ncomplete -o default -F _tocctl tocctl\n");
    print(ctl, &out);
    return CTL_OK;
}
