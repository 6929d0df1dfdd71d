#include "common/base/config.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/base/cleanup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLAG_MAX 80

struct parser {
    const struct toc_setting *table;
    size_t n;
    char *settings; /* the role's struct */
    bool *given;    /* per row: by the environment or a flag */
    int argc;
    char **argv;
    struct toc_error *reterr;
};

const char *
toc_env(const char *name)
{
    return getenv(name);
}

static char *
flag_name(char out[FLAG_MAX], const struct toc_setting *setting)
{
    toc_format(out, FLAG_MAX, "--%s", setting->name);
    for (char *at = out; *at != '\0'; at++)
        if (*at == '_')
            *at = '-';
    return out;
}

static char *
env_name(char out[FLAG_MAX], const struct toc_setting *setting)
{
    toc_format(out, FLAG_MAX, "TOC_%s", setting->name);
    for (char *at = out; *at != '\0'; at++)
        if (*at >= 'a' && *at <= 'z')
            *at = (char)(*at - 'a' + 'A');
    return out;
}

/* The rule that values must keep, for help and errors. */
static void
describe_range(const struct toc_setting *setting, char *out, size_t cap)
{
    switch (setting->kind) {
    case TOC_SETTING_TEXT:
        toc_copy(out, cap, TOC_STR("text"));
        break;
    case TOC_SETTING_BOOL:
        toc_copy(out, cap, TOC_STR("true, false"));
        break;
    case TOC_SETTING_INT:
        toc_format(out, cap, "%lld to %lld%s%s", (long long)setting->min,
                   (long long)setting->max, setting->unit[0] ? " " : "",
                   setting->unit);
        break;
    }
}

static enum toc_status
bad_value(const struct parser *p, const struct toc_setting *setting,
          const char *source, const char *value)
{
    char range[80];

    describe_range(setting, range, sizeof range);
    return toc_error_set(p->reterr, TOC_INVALID, "config", 0,
                         "%s: \"%.60s\" is not valid, must be %s", source,
                         value, range);
}

static bool
store_value(const struct parser *p, const struct toc_setting *setting,
            const char *value)
{
    char *member = p->settings + setting->offset;
    struct toc_str text = toc_str_of(value);
    bool flag;
    int64_t number;

    switch (setting->kind) {
    case TOC_SETTING_TEXT:
        if (!toc_utf8_valid(text) || toc_str_has_control(text))
            return false;
        memcpy(member, &value, sizeof value);
        return true;
    case TOC_SETTING_BOOL:
        flag = toc_str_eq(text, TOC_STR("true"));
        if (!flag && !toc_str_eq(text, TOC_STR("false")))
            return false;
        memcpy(member, &flag, sizeof flag);
        return true;
    case TOC_SETTING_INT:
        if (!toc_parse_i64(text, setting->min, setting->max, &number))
            return false;
        memcpy(member, &number, sizeof number);
        return true;
    }
    return false;
}

/* A fallback that breaks its own rule is a bug of the table. */
static void
take_fallbacks(const struct parser *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->table[i].fallback != NULL)
            TOC_ASSERT(store_value(p, &p->table[i], p->table[i].fallback));
}

static enum toc_status
take_environment(const struct parser *p)
{
    for (size_t i = 0; i < p->n; i++) {
        char name[FLAG_MAX];
        const char *value = toc_env(env_name(name, &p->table[i]));
        if (value == NULL || value[0] == '\0')
            continue;
        if (!store_value(p, &p->table[i], value))
            return bad_value(p, &p->table[i], name, value);
        p->given[i] = true;
    }
    return TOC_OK;
}

static size_t
smallest(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;

    return least < c ? least : c;
}

/* Levenshtein's edit distance, one row at a time. */
static size_t
edit_distance(struct toc_str a, struct toc_str b)
{
    size_t row[FLAG_MAX + 1];

    if (a.len > FLAG_MAX || b.len > FLAG_MAX)
        return FLAG_MAX;
    for (size_t j = 0; j <= b.len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t above = row[j];
            size_t change = a.ptr[i - 1] == b.ptr[j - 1] ? 0 : 1;
            row[j] = smallest(above + 1, row[j - 1] + 1, diagonal + change);
            diagonal = above;
        }
    }
    return row[b.len];
}

static enum toc_status
unknown_flag(const struct parser *p, struct toc_str flag)
{
    char nearest[FLAG_MAX] = "--help";
    size_t best = edit_distance(flag, TOC_STR("--help"));

    for (size_t i = 0; i < p->n; i++) {
        char name[FLAG_MAX];
        size_t distance =
            edit_distance(flag, toc_str_of(flag_name(name, &p->table[i])));
        if (distance < best) {
            best = distance;
            memcpy(nearest, name, sizeof nearest);
        }
    }
    return toc_error_set(p->reterr, TOC_INVALID, "config", 0,
                         "unknown flag %.*s, the nearest is %s (see --help)",
                         flag.len > 60 ? 60 : (int)flag.len, flag.ptr, nearest);
}

static const struct toc_setting *
find_flag(const struct parser *p, struct toc_str flag)
{
    for (size_t i = 0; i < p->n; i++) {
        char name[FLAG_MAX];
        if (toc_str_eq(flag, toc_str_of(flag_name(name, &p->table[i]))))
            return &p->table[i];
    }
    return NULL;
}

/* Takes the flag at argv[*at], and the word after it when that is its value.
 * A bool may stand alone. */
static enum toc_status
take_flag(const struct parser *p, int *at)
{
    const char *word = p->argv[*at];
    const char *equals = strchr(word, '=');
    const char *next = *at + 1 < p->argc ? p->argv[*at + 1] : NULL;
    struct toc_str flag = toc_str_of(word);
    const struct toc_setting *setting;
    const char *value = equals != NULL ? equals + 1 : NULL;
    char name[FLAG_MAX];

    if (equals != NULL)
        flag.len = (size_t)(equals - word);
    if (!toc_str_starts(flag, TOC_STR("--")))
        return toc_error_set(p->reterr, TOC_INVALID, "config", 0,
                             "unexpected argument \"%.60s\" (see --help)",
                             word);
    setting = find_flag(p, flag);
    if (setting == NULL)
        return unknown_flag(p, flag);
    flag_name(name, setting);
    if (value == NULL && next != NULL && strncmp(next, "--", 2) != 0) {
        value = next;
        ++*at;
    }
    if (value == NULL && setting->kind == TOC_SETTING_BOOL)
        value = "true";
    if (value == NULL)
        return toc_error_set(p->reterr, TOC_INVALID, "config", 0,
                             "%s needs a value", name);
    if (!store_value(p, setting, value))
        return bad_value(p, setting, name, value);
    p->given[setting - p->table] = true;
    return TOC_OK;
}

static enum toc_status
check_given(const struct parser *p)
{
    for (size_t i = 0; i < p->n; i++) {
        char flag[FLAG_MAX], env[FLAG_MAX];
        if (p->given[i] || p->table[i].fallback != NULL)
            continue;
        return toc_error_set(p->reterr, TOC_INVALID, "config", 0,
                             "%s=VALUE (or %s) must be given: %s",
                             flag_name(flag, &p->table[i]),
                             env_name(env, &p->table[i]), p->table[i].doc);
    }
    return TOC_OK;
}

static const char *
fallback_text(const struct toc_setting *setting)
{
    if (setting->fallback == NULL)
        return "required";
    return setting->fallback[0] != '\0' ? setting->fallback : "none";
}

static void
print_help(const struct parser *p, const char *summary)
{
    int widest = 0;
    char name[FLAG_MAX], range[80];

    for (size_t i = 0; i < p->n; i++) {
        int len = (int)strlen(flag_name(name, &p->table[i]));
        if (len > widest)
            widest = len;
    }
    printf("%s\n\nSettings, as --flag=VALUE or in the environment (the flag "
           "wins):\n\n",
           summary);
    for (size_t i = 0; i < p->n; i++) {
        const struct toc_setting *setting = &p->table[i];
        describe_range(setting, range, sizeof range);
        printf("  %-*s  %s\n", widest, flag_name(name, setting), setting->doc);
        printf("  %-*s  %s; default: %s", widest, "", range,
               fallback_text(setting));
        printf("; %s\n", env_name(name, setting));
    }
    printf("  %-*s  Print this and exit.\n", widest, "--help");
    printf("  %-*s  Print the version and exit.\n", widest, "--version");
}

static bool
answer_question(const struct parser *p, const char *summary)
{
    for (int i = 1; i < p->argc; i++) {
        if (strcmp(p->argv[i], "--help") == 0) {
            print_help(p, summary);
            return true;
        }
        if (strcmp(p->argv[i], "--help-markdown") == 0) {
            TOC_CLEANUP(toc_buf_done) struct toc_buf out = {0};
            toc_config_markdown(p->table, p->n, &out);
            fputs(out.data, stdout);
            return true;
        }
        if (strcmp(p->argv[i], "--version") == 0) {
            printf("toc %s\n", TOC_VERSION);
            return true;
        }
    }
    return false;
}

enum toc_status
toc_config_parse(const struct toc_setting *table, size_t n, void *settings,
                 int argc, char **argv, const char *summary, bool *ret_done,
                 struct toc_error *reterr)
{
    TOC_AUTO_FREE bool *given = TOC_NEW_ARRAY(bool, n);
    struct parser p = {table, n, settings, given, argc, argv, reterr};
    enum toc_status st;

    if (answer_question(&p, summary)) {
        *ret_done = true;
        return TOC_OK;
    }
    take_fallbacks(&p);
    st = take_environment(&p);
    for (int i = 1; st == TOC_OK && i < argc; i++)
        st = take_flag(&p, &i);
    if (st == TOC_OK)
        st = check_given(&p);
    if (st == TOC_OK)
        *ret_done = false;
    return st;
}

/* A cell of a Markdown table: no bar may end it. */
static void
add_cell(struct toc_buf *out, const char *text, bool code)
{
    toc_buf_text(out, code ? " `" : " ");
    for (; *text != '\0'; text++) {
        if (*text == '|')
            toc_buf_char(out, '\\');
        toc_buf_char(out, *text);
    }
    toc_buf_text(out, code ? "` |" : " |");
}

void
toc_config_markdown(const struct toc_setting *table, size_t n,
                    struct toc_buf *out)
{
    toc_buf_text(out, "| Flag | Environment | Default | Values | Meaning |\n"
                      "| --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < n; i++) {
        const struct toc_setting *setting = &table[i];
        bool literal = setting->fallback != NULL && setting->fallback[0] != 0;
        char name[FLAG_MAX], range[80];
        describe_range(setting, range, sizeof range);
        toc_buf_char(out, '|');
        add_cell(out, flag_name(name, setting), true);
        add_cell(out, env_name(name, setting), true);
        add_cell(out, fallback_text(setting), literal);
        add_cell(out, range, false);
        add_cell(out, setting->doc, false);
        toc_buf_char(out, '\n');
    }
}
