#include "admin/ctl/ctl.h"

#include "admin/ctl/command.h"
#include "admin/ctl/commands.h"

#include <stdarg.h>
#include <string.h>

void
ctl_done(struct ctl *ctl)
{
    toc_arena_done(&ctl->arena);
    toc_arena_done(&ctl->keep);
}

const char *
ctl_flag(const struct ctl *ctl, const char *name)
{
    const char *text = NULL;

    for (size_t i = 0; i < ctl->n_values; i++)
        if (strcmp(ctl->values[i].flag->name, name) == 0)
            text = ctl->values[i].text;
    return text;
}

bool
ctl_has(const struct ctl *ctl, const char *name)
{
    return ctl_flag(ctl, name) != NULL;
}

enum ctl_exit
ctl_fail(struct ctl *ctl, enum ctl_exit code, const char *hint,
         const char *format, ...)
{
    va_list args;

    fputs("error: ", ctl->err);
    va_start(args, format);
    vfprintf(ctl->err, format, args);
    va_end(args);
    fputc('\n', ctl->err);
    if (hint != NULL)
        fprintf(ctl->err, "hint: %s\n", hint);
    return code;
}

void
ctl_note(struct ctl *ctl, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vfprintf(ctl->err, format, args);
    va_end(args);
    fputc('\n', ctl->err);
}

int64_t
ctl_now_ms(const struct ctl *ctl)
{
    return toc_clock_wall(ctl->clk).ms;
}

enum ctl_exit
ctl_worse(enum ctl_exit a, enum ctl_exit b)
{
    return a != CTL_OK ? a : b;
}

static enum ctl_exit
run_parsed(struct ctl *ctl)
{
    if (ctl_has(ctl, "version"))
        return ctl_cmd_version(ctl);
    if (ctl->command == NULL)
        return ctl_help_overview(ctl);
    if (ctl_has(ctl, "help"))
        return ctl_help_command(ctl, ctl->command);
    return ctl->command->run(ctl);
}

enum ctl_exit
ctl_run(struct ctl *ctl, int argc, char **argv)
{
    enum ctl_exit end = ctl_parse(ctl, argc, argv);

    if (end == CTL_OK)
        end = run_parsed(ctl);
    /* A full disk or a closed pipe must not look like success. */
    if ((fflush(ctl->out) != 0 || ferror(ctl->out) != 0) && end == CTL_OK)
        end = ctl_fail(ctl, CTL_FAILED, NULL, "cannot write the output");
    return end;
}
