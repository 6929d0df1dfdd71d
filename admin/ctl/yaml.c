#include "admin/ctl/show.h"

#include "common/base/buf.h"
#include "common/rpc/pb_json.h"

#include <jansson.h>
#include <string.h>

static void yaml_value(const json_t *value, size_t indent, bool in_item,
                       struct toc_buf *out);

/* Words that YAML 1.1 or 1.2 would read as something else than text. */
static bool
is_reserved(const char *text)
{
    static const char *const words[] = {
        "y",   "n",  "yes", "no",  "on",   "off",   "true", "false", "null",
        "Y",   "N",  "Yes", "No",  "On",   "Off",   "True", "False", "Null",
        "YES", "NO", "ON",  "OFF", "TRUE", "FALSE", "NULL"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(text, words[i]) == 0)
            return true;
    return false;
}

/* Plain only when nothing can be misread: a letter, then letters, digits and
 * a few marks. Everything else is quoted as JSON is, which YAML reads. */
static bool
is_plain(struct toc_str s)
{
    if (s.len == 0 || is_reserved(s.ptr))
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool letter =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        bool rest = (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '/';
        if (!letter && (i == 0 || !rest))
            return false;
    }
    return true;
}

static void
yaml_scalar(const json_t *value, struct toc_buf *out)
{
    struct toc_str s;

    if (!json_is_string(value)) {
        toc_pb_json_text(value, 0, out);
        return;
    }
    s = (struct toc_str){json_string_value(value), json_string_length(value)};
    if (is_plain(s))
        toc_buf_str(out, s);
    else
        toc_pb_json_quote(s, out);
}

static bool
is_empty(const json_t *value)
{
    return (json_is_object(value) && json_object_size(value) == 0) ||
           (json_is_array(value) && json_array_size(value) == 0);
}

/* in_item: the first line stands behind "- " already. */
static void
yaml_object(const json_t *object, size_t indent, bool in_item,
            struct toc_buf *out)
{
    json_t *tree = (json_t *)(uintptr_t)object;
    const char *key;
    json_t *value;

    json_object_foreach(tree, key, value)
    {
        if (!in_item)
            toc_buf_printf(out, "%*s", (int)indent, "");
        in_item = false;
        if (is_plain(toc_str_of(key)))
            toc_buf_text(out, key);
        else
            toc_pb_json_quote(toc_str_of(key), out);
        toc_buf_char(out, ':');
        if (json_is_object(value) && !is_empty(value)) {
            toc_buf_char(out, '\n');
            yaml_object(value, indent + 2, false, out);
        } else {
            yaml_value(value, indent, false, out);
        }
    }
}

static void
yaml_value(const json_t *value, size_t indent, bool in_item,
           struct toc_buf *out)
{
    if (json_is_array(value) && !is_empty(value)) {
        if (!in_item)
            toc_buf_char(out, '\n');
        for (size_t i = 0; i < json_array_size(value); i++) {
            toc_buf_printf(out, "%*s- ", (int)indent, "");
            yaml_value(json_array_get(value, i), indent + 2, true, out);
        }
        return;
    }
    if (json_is_object(value) && !is_empty(value)) {
        yaml_object(value, indent, in_item, out);
        return;
    }
    if (!in_item)
        toc_buf_char(out, ' ');
    yaml_scalar(value, out);
    toc_buf_char(out, '\n');
}

void
ctl_yaml(const json_t *tree, size_t indent, struct toc_buf *out)
{
    if (json_is_object(tree) && !is_empty(tree))
        yaml_object(tree, indent, false, out);
    else
        yaml_value(tree, indent, true, out);
}
