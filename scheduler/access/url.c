#include "scheduler/access/url.h"

#include <string.h>

#define SCHEME TOC_STR("grpc://")
#define HOST_MAX 253

static bool
is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_';
}

static bool
is_name_host(struct toc_str host)
{
    if (host.len == 0 || host.len > HOST_MAX || host.ptr[0] == '-' ||
        host.ptr[0] == '.')
        return false;
    for (size_t i = 0; i < host.len; i++)
        if (!is_word(host.ptr[i]) && host.ptr[i] != '-' && host.ptr[i] != '.')
            return false;
    return true;
}

/* "[" hexadecimal digits, colons and dots "]" */
static bool
is_ipv6_host(struct toc_str host)
{
    if (host.len < 4 || host.len > 47 || host.ptr[0] != '[' ||
        host.ptr[host.len - 1] != ']')
        return false;
    for (size_t i = 1; i + 1 < host.len; i++) {
        char c = host.ptr[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ||
              (c >= 'A' && c <= 'F') || c == ':' || c == '.'))
            return false;
    }
    return memchr(host.ptr, ':', host.len) != NULL;
}

static const char *
check_authority(struct toc_str authority)
{
    struct toc_str host = authority, port = {NULL, 0};
    int64_t number;

    for (size_t i = authority.len; i-- > 0;)
        if (authority.ptr[i] == ':') {
            host.len = i;
            port =
                (struct toc_str){authority.ptr + i + 1, authority.len - i - 1};
            break;
        }
    if (!toc_parse_i64(port, 1, 65535, &number))
        return "must name a port of 1 to 65535: grpc://host:port";
    if (!is_name_host(host) && !is_ipv6_host(host))
        return "must name a host, an IPv4 address or an IPv6 one in brackets";
    return NULL;
}

/* package.Service/Method */
static bool
is_method(struct toc_str path)
{
    struct toc_str service, method = path;

    if (!toc_str_next(&method, '/', &service) || service.len == 0 ||
        method.len == 0)
        return false;
    for (size_t i = 0; i < service.len; i++) {
        bool dot = service.ptr[i] == '.';
        if (!is_word(service.ptr[i]) && !dot)
            return false;
        if (dot &&
            (i == 0 || i + 1 == service.len || service.ptr[i - 1] == '.'))
            return false;
    }
    for (size_t i = 0; i < method.len; i++)
        if (!is_word(method.ptr[i]))
            return false;
    return true;
}

const char *
sched_url_check(struct toc_str url, bool *ret_method)
{
    struct toc_str rest = url, authority;
    const char *slash;

    *ret_method = false;
    if (!toc_str_starts(url, SCHEME))
        return "must begin with \"grpc://\"";
    rest.ptr += SCHEME.len;
    rest.len -= SCHEME.len;
    slash = rest.len > 0 ? memchr(rest.ptr, '/', rest.len) : NULL;
    authority = rest;
    if (slash != NULL) {
        authority.len = (size_t)(slash - rest.ptr);
        rest.ptr = slash + 1;
        rest.len -= authority.len + 1;
        if (!is_method(rest))
            return "must be grpc://host:port or "
                   "grpc://host:port/package.Service/Method";
        *ret_method = true;
    }
    return check_authority(authority);
}
