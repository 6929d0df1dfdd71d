#include "common/invoke/target.h"

#include "common/model/limits.h"

#include <string.h>

#define HOST_MAX 253 /* the longest name that DNS has */

static bool
is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_';
}

static bool
host_valid(struct toc_str host)
{
    bool bracketed =
        host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']';

    if (bracketed) {
        host.ptr++;
        host.len -= 2;
    }
    if (host.len == 0 || host.len > HOST_MAX)
        return false;
    for (size_t i = 0; i < host.len; i++) {
        char c = host.ptr[i];

        if (!is_word(c) && c != '-' && c != '.' && !(bracketed && c == ':'))
            return false;
    }
    return true;
}

static bool
address_valid(struct toc_str address)
{
    struct toc_str host = address, port;
    int64_t number;

    while (host.len > 0 && host.ptr[host.len - 1] != ':')
        host.len--;
    if (host.len == 0)
        return false;
    port = (struct toc_str){address.ptr + host.len, address.len - host.len};
    host.len--;
    return host_valid(host) && toc_parse_i64(port, 1, UINT16_MAX, &number);
}

/* One part of a method's path: letters, digits, _ and (in a service) dots. */
static bool
name_valid(struct toc_str name, bool dots)
{
    for (size_t i = 0; i < name.len; i++)
        if (!is_word(name.ptr[i]) && !(dots && name.ptr[i] == '.'))
            return false;
    return name.len > 0;
}

static bool
method_valid(struct toc_str method)
{
    struct toc_str rest = {method.ptr + 1, method.len - 1}, service, name;

    return toc_str_next(&rest, '/', &service) && name_valid(service, true) &&
           toc_str_next(&rest, '/', &name) && name_valid(name, false) &&
           rest.len == 0 && method.ptr[method.len - 1] != '/';
}

static bool
cut(struct toc_str *text, struct toc_str prefix)
{
    if (!toc_str_starts(*text, prefix))
        return false;
    text->ptr += prefix.len;
    text->len -= prefix.len;
    return true;
}

const char *
toc_invoke_target_parse(struct toc_str text,
                        struct toc_invoke_target *ret_target)
{
    struct toc_str rest = text, address, method = {NULL, 0};
    const char *slash;

    if (text.len > TOC_TARGET_MAX)
        return "the target is too long";
    if (cut(&rest, TOC_STR("grpcs://")))
        return "grpcs:// is not served yet";
    if (!cut(&rest, TOC_STR("grpc://")) && !cut(&rest, TOC_STR("dns:///")))
        return "the target is not grpc://host:port";
    address = rest;
    slash = rest.len > 0 ? memchr(rest.ptr, '/', rest.len) : NULL;
    if (slash != NULL) {
        address.len = (size_t)(slash - rest.ptr);
        method = (struct toc_str){slash, rest.len - address.len};
    }
    if (!address_valid(address))
        return "the target has no valid host:port";
    if (method.len == 1)
        method = (struct toc_str){NULL, 0}; /* grpc://host:port/ */
    if (method.len > 0 && !method_valid(method))
        return "the target's path is not /package.Service/Method";
    *ret_target = (struct toc_invoke_target){address, method};
    return NULL;
}
