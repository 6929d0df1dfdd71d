/*
 * Goal: docs/STATES.md says what the code does.
 * Method: the document is rendered from the tables of states, edges and
 * results, and held against the file; with TOC_WRITE_DOCS=1 it is written.
 */
#include "common/base/buf.h"
#include "common/base/config.h"
#include "common/model/task.h"
#include "tests/support/toc_check.h"

#include <stdio.h>
#include <string.h>

static const char *
path(void)
{
    const char *root = toc_env("TOC_TEST_ROOT");
    static char text[512];

    toc_format(text, sizeof text, "%s/docs/STATES.md", root ? root : ".");
    return text;
}

static void
render_states(struct toc_buf *out)
{
    toc_buf_text(out, "| state | number | meaning |\n|---|---|---|\n");
#define X(name, number, text) \
    toc_buf_text(out, "| " #name " | " #number " | " text " |\n");
    TOC_STATE_MAP(X)
#undef X
}

static void
render_edges(struct toc_buf *out)
{
    toc_buf_text(out, "| from | to | by | when |\n|---|---|---|---|\n");
#define X(from, to, by, text) \
    toc_buf_text(out, "| " #from " | " #to " | " by " | " text " |\n");
    TOC_EDGE_MAP(X)
#undef X
}

static void
render_results(struct toc_buf *out)
{
    toc_buf_text(out, "| result | number | meaning |\n|---|---|---|\n");
#define X(name, number, text) \
    toc_buf_text(out, "| " #name " | " #number " | " text " |\n");
    TOC_RESULT_MAP(X)
#undef X
}

static void
render(struct toc_buf *out)
{
    toc_buf_text(
        out, "# States of a task\n\n"
             "Written from the tables in common/model/task.h by a test "
             "(`TOC_WRITE_DOCS=1` writes it anew).\n\n"
             "Numbers are as stored. From SUCCESS on a task has ended.\n\n");
    render_states(out);
    toc_buf_text(
        out,
        "\n## Edges\n\nEach is made by compare-and-set on the row. What is not "
        "here does not happen: every other pair is refused, and tested.\n\n");
    render_edges(out);
    toc_buf_text(out, "\n## How an attempt ends\n\n");
    render_results(out);
}

static void
write_file(const struct toc_buf *text)
{
    FILE *file = fopen(path(), "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text->data, 1, text->len, file), text->len);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(states_document_is_true)
{
    struct toc_buf want = {0};
    static char have[65536];
    FILE *file;
    size_t len;

    render(&want);
    if (toc_env("TOC_WRITE_DOCS"))
        write_file(&want);
    file = fopen(path(), "r");
    ck_assert_msg(file != NULL, "%s is not there", path());
    len = fread(have, 1, sizeof have, file);
    fclose(file);
    ck_assert_msg(len == want.len && memcmp(have, want.data, len) == 0,
                  "docs/STATES.md is not what the code says; write it with "
                  "TOC_WRITE_DOCS=1");
    toc_buf_done(&want);
}
END_TEST

TOC_CHECK_MAIN("states_doc", states_document_is_true)
