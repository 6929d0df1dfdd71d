/*
 * Goal: docs/TOCCTL.md says what tocctl does.
 * Method: held against `tocctl help --markdown`, which is made from the table
 * of commands; with TOC_WRITE_DOCS=1 the file is written.
 */
#include "admin/ctl/command.h"

#include "common/base/config.h"
#include "common/clock/sim/clock_sim.h"
#include "tests/support/toc_check.h"

#include <stdio.h>
#include <string.h>

static char *
render(void)
{
    char *argv[] = {"tocctl", "help", "--markdown", NULL};
    struct toc_clock_sim clock;
    struct ctl ctl = {.in = stdin, .err = stderr, .clk = &clock.clock};
    static char *text;
    size_t len;

    toc_clock_sim_init(&clock, (struct toc_wall){0});
    ctl.out = open_memstream(&text, &len);
    ck_assert_int_eq(ctl_run(&ctl, 3, argv), CTL_OK);
    fclose(ctl.out);
    ctl_done(&ctl);
    return text;
}

static char *
stored(const char *path)
{
    static char text[256 * 1024];
    FILE *file = fopen(path, "r");
    size_t n;

    ck_assert_msg(file != NULL, "cannot read %s", path);
    n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    return text;
}

static void
write_to(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(document_is_the_help)
{
    const char *root = toc_env("TOC_TEST_ROOT");
    char path[512];
    char *text = render();

    toc_format(path, sizeof path, "%s/docs/TOCCTL.md", root ? root : ".");
    if (toc_env("TOC_WRITE_DOCS") != NULL)
        write_to(path, text);
    ck_assert_msg(strcmp(stored(path), text) == 0,
                  "docs/TOCCTL.md is not what `tocctl help --markdown` says: "
                  "run this with TOC_WRITE_DOCS=1");
}
END_TEST

/* A command whose flag means two things, or whose name cannot be found. */
START_TEST(table_is_sound)
{
    for (size_t i = 0; i < ctl_n_commands; i++) {
        const struct ctl_command *command = &ctl_commands[i];
        ck_assert(command->run != NULL);
        ck_assert_ptr_nonnull(command->summary);
        for (size_t g = 0; command->groups[g] != NULL; g++) {
            const struct ctl_flag_group *group = command->groups[g];
            ck_assert_uint_lt(g, CTL_GROUPS_MAX);
            for (size_t f = 0; f < group->n; f++)
                for (size_t k = 0; k < ctl_global_flags.n; k++)
                    ck_assert_str_ne(group->flags[f].name,
                                     ctl_global_flags.flags[k].name);
        }
    }
}
END_TEST

TOC_CHECK_MAIN("doc", document_is_the_help, table_is_sound)
