/*
 * Settings of a process, described once in a table: parsing, checking, --help
 * and docs/CONFIGURATION.md all come from it. A setting `mysql_url` is given as
 * --mysql-url=VALUE (or two words) or TOC_MYSQL_URL=VALUE; the flag wins. An
 * unknown flag, an unknown TOC_ name is no error for the environment (other
 * programs share it), a value out of range refuses to start.
 *
 * Threads: at start only. Texts stay valid as long as the process.
 */
#ifndef TOC_BASE_CONFIG_H
#define TOC_BASE_CONFIG_H

#include "common/base/buf.h"
#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum toc_setting_kind {
    TOC_SETTING_TEXT, /* const char * */
    TOC_SETTING_INT,  /* int64_t, within [min, max] */
    TOC_SETTING_BOOL, /* bool: true, false */
};

struct toc_setting {
    const char *name; /* lower case with underscores */
    enum toc_setting_kind kind;
    size_t offset;        /* of the member in the role's settings struct */
    const char *fallback; /* as text; NULL: must be given */
    int64_t min, max;
    const char *unit; /* "ms", "tasks", ... or "" */
    const char *doc;  /* one sentence */
};

/*
 * Fills *settings from the table's fallbacks, the environment and argv.
 * `--help`, `--help-markdown` (for docs/CONFIGURATION.md) and `--version` are
 * answered by printing and *ret_done = true.
 * Errors name the setting, the value and the rule.
 */
TOC_MUST_CHECK enum toc_status toc_config_parse(
    const struct toc_setting *table, size_t n, void *settings, int argc,
    char **argv, const char *summary, bool *ret_done, struct toc_error *reterr);

/* The table as a Markdown section for docs/CONFIGURATION.md. */
void toc_config_markdown(const struct toc_setting *table, size_t n,
                         struct toc_buf *out);

/* An environment variable, or NULL; the one place where it is read. */
const char *toc_env(const char *name);

#endif
