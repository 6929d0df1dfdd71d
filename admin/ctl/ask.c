#include "admin/ctl/ask.h"

#include "common/api/api.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"

#include <errno.h>
#include <string.h>

enum ctl_exit
ctl_ask_ref(struct ctl *ctl, const char *text, struct ctl_ref *ret_ref)
{
    const char *why = "";

    if (ctl_ref_parse(&ctl->arena, text, ret_ref, &why))
        return CTL_OK;
    return ctl_fail(ctl, CTL_USAGE, NULL, "%s: %s",
                    ctl_safe(&ctl->arena, toc_str_of(text)), why);
}

Toc__V1__TaskKey *
ctl_ref_key(struct ctl *ctl, const struct ctl_ref *ref)
{
    Toc__V1__TaskKey *key = toc_arena_alloc(&ctl->arena, sizeof *key);

    toc__v1__task_key__init(key);
    key->biz_type = ref->biz_type;
    key->biz_id = ref->biz_id;
    key->name = ref->name;
    return key;
}

enum ctl_exit
ctl_ask_time(struct ctl *ctl, const char *flag,
             Google__Protobuf__Timestamp **ret)
{
    const char *text = ctl_flag(ctl, flag);
    int64_t ms;

    *ret = NULL;
    if (text == NULL)
        return CTL_OK;
    if (!toc_time_parse(toc_str_of(text), &ms))
        return ctl_fail(ctl, CTL_USAGE, NULL,
                        "--%s %s: must be a time as in 2030-01-31T12:00:00Z",
                        flag, ctl_safe(&ctl->arena, toc_str_of(text)));
    *ret = toc_api_time(&ctl->keep, ms);
    return CTL_OK;
}

enum ctl_exit
ctl_ask_duration(struct ctl *ctl, const char *flag,
                 Google__Protobuf__Duration **ret)
{
    const char *text = ctl_flag(ctl, flag);
    int64_t ms;

    *ret = NULL;
    if (text == NULL)
        return CTL_OK;
    if (!ctl_duration_parse(toc_str_of(text), &ms))
        return ctl_fail(ctl, CTL_USAGE, NULL,
                        "--%s %s: must be a duration as in 90s, 1h30m, 250ms "
                        "or 2d",
                        flag, ctl_safe(&ctl->arena, toc_str_of(text)));
    *ret = toc_api_duration(&ctl->keep, ms);
    return CTL_OK;
}

enum ctl_exit
ctl_ask_when(struct ctl *ctl, bool needed, struct ctl_when *ret_when)
{
    enum ctl_exit end;

    *ret_when = (struct ctl_when){NULL, NULL};
    end = ctl_ask_time(ctl, "at", &ret_when->at);
    if (end == CTL_OK)
        end = ctl_ask_duration(ctl, "in", &ret_when->in);
    if (end != CTL_OK)
        return end;
    if (ret_when->at != NULL && ret_when->in != NULL)
        return ctl_fail(ctl, CTL_USAGE, NULL,
                        "--at and --in exclude each other");
    if (needed && ret_when->at == NULL && ret_when->in == NULL)
        return ctl_fail(ctl, CTL_USAGE,
                        "--in 30m, or --at 2030-01-31T12:00:00Z",
                        "no time: --at or --in is missing");
    return CTL_OK;
}

enum ctl_exit
ctl_ask_number(struct ctl *ctl, const char *flag, int64_t min, int64_t max,
               int64_t *ret_number)
{
    const char *text = ctl_flag(ctl, flag);

    if (text == NULL || toc_parse_i64(toc_str_of(text), min, max, ret_number))
        return CTL_OK;
    return ctl_fail(ctl, CTL_USAGE, NULL,
                    "--%s %s: must be a number from %lld to %lld", flag,
                    ctl_safe(&ctl->arena, toc_str_of(text)), (long long)min,
                    (long long)max);
}

/* "at-least-once" beside "AT_LEAST_ONCE". */
static bool
same_word(struct toc_str word, const char *name)
{
    if (word.len != strlen(name))
        return false;
    for (size_t i = 0; i < word.len; i++) {
        char c = word.ptr[i];
        if (c >= 'a' && c <= 'z')
            c = (char)(c - 'a' + 'A');
        if (c == '-')
            c = '_';
        if (c != name[i])
            return false;
    }
    return true;
}

static void
add_word(struct toc_buf *out, const char *name)
{
    for (const char *at = name; *at != '\0'; at++) {
        char c = *at == '_' ? '-' : *at;
        toc_buf_char(out, c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c);
    }
}

enum ctl_exit
ctl_ask_word(struct ctl *ctl, const char *flag, struct toc_str word,
             const ProtobufCEnumDescriptor *type, const char *prefix,
             int *ret_number)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf words = {0};

    for (unsigned i = 0; i < type->n_values; i++) {
        const char *name = type->values[i].name + strlen(prefix);
        if (type->values[i].value == 0)
            continue;
        if (same_word(word, name)) {
            *ret_number = type->values[i].value;
            return CTL_OK;
        }
        toc_buf_text(&words, words.len > 0 ? ", " : "");
        add_word(&words, name);
    }
    return ctl_fail(ctl, CTL_USAGE, NULL, "--%s %s: must be one of %s", flag,
                    ctl_safe(&ctl->arena, word), words.data);
}

static bool
read_all(FILE *file, size_t max, struct toc_buf *out)
{
    char chunk[8192];
    size_t n;

    while ((n = fread(chunk, 1, sizeof chunk, file)) > 0) {
        toc_buf_add(out, chunk, n);
        if (out->len > max)
            return true;
    }
    return ferror(file) == 0;
}

enum ctl_exit
ctl_ask_file(struct ctl *ctl, const char *path, size_t max,
             struct toc_str *ret_bytes)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf bytes = {0};
    const char *name = ctl_safe(&ctl->arena, toc_str_of(path));
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? ctl->in : fopen(path, "rbe");
    bool good;

    if (file == NULL)
        return ctl_fail(ctl, CTL_USAGE, NULL, "%s: %s", name,
                        toc_errno_text(errno));
    good = read_all(file, max, &bytes);
    if (!is_stdin)
        fclose(file);
    if (!good)
        return ctl_fail(ctl, CTL_FAILED, NULL, "%s: cannot be read", name);
    if (bytes.len > max)
        return ctl_fail(ctl, CTL_USAGE, NULL, "%s: larger than %zu bytes", name,
                        max);
    *ret_bytes = toc_arena_str(&ctl->keep, toc_buf_view(&bytes));
    return CTL_OK;
}

bool
ctl_ask_yes(struct ctl *ctl, const char *question)
{
    char line[16];

    if (ctl_has(ctl, "yes"))
        return true;
    fprintf(ctl->err, "%s [y/N] ", question);
    fflush(ctl->err);
    if (fgets(line, sizeof line, ctl->in) == NULL) {
        fputc('\n', ctl->err);
        return false;
    }
    line[strcspn(line, "\r\n")] = '\0';
    return strcmp(line, "y") == 0 || strcmp(line, "Y") == 0 ||
           strcmp(line, "yes") == 0;
}
