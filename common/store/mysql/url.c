#include "common/store/mysql/url.h"

#include <string.h>

#define DEFAULT_PORT 3306

static enum toc_status
bad(const char *url, const char *why, struct toc_error *reterr)
{
    return toc_error_set(reterr, TOC_INVALID, "mysql", 0,
                         "\"%.120s\" is no address of a database: %s", url,
                         why);
}

static bool
put(char *dst, size_t cap, struct toc_str s)
{
    if (s.len >= cap || toc_str_has_control(s))
        return false;
    toc_copy(dst, cap, s);
    return true;
}

/* Splits at the first sep: *s keeps what is before it. */
static bool
split(struct toc_str *s, char sep, struct toc_str *ret_rest)
{
    const char *at = s->len > 0 ? memchr(s->ptr, sep, s->len) : NULL;

    *ret_rest = (struct toc_str){NULL, 0};
    if (at == NULL)
        return false;
    *ret_rest = (struct toc_str){at + 1, s->len - (size_t)(at + 1 - s->ptr)};
    s->len = (size_t)(at - s->ptr);
    return true;
}

/* host, host:port, [v6], [v6]:port */
static bool
parse_host(struct toc_str s, struct toc_my_address *to)
{
    struct toc_str rest = {NULL, 0};
    int64_t port = DEFAULT_PORT;

    if (s.len > 0 && s.ptr[0] == '[') {
        s.ptr++;
        s.len--;
        if (!split(&s, ']', &rest))
            return false;
        if (rest.len > 0 && rest.ptr[0] != ':')
            return false;
        if (rest.len > 0) {
            rest.ptr++;
            rest.len--;
        }
    } else {
        (void)split(&s, ':', &rest);
    }
    if (rest.len > 0 && !toc_parse_i64(rest, 1, 65535, &port))
        return false;
    to->port = (unsigned)port;
    return put(to->host, sizeof to->host, s);
}

enum toc_status
toc_my_url_parse(const char *url, struct toc_my_address *ret_address,
                 struct toc_error *reterr)
{
    static const struct toc_str scheme = {"mysql://", 8};
    static const struct toc_str socket_is = {"socket=", 7};
    struct toc_my_address to = {{0}, {0}, {0}, {0}, 0};
    struct toc_str user = toc_str_of(url), host, db, query;

    if (!toc_str_starts(user, scheme))
        return bad(url, "it must begin with mysql://", reterr);
    user.ptr += scheme.len;
    user.len -= scheme.len;
    if (!split(&user, '@', &host) || user.len == 0)
        return bad(url, "no user (mysql://user@host/db)", reterr);
    if (memchr(user.ptr, ':', user.len) != NULL)
        return bad(url, "a password belongs into the password file", reterr);
    if (!split(&host, '/', &db))
        return bad(url, "no database name", reterr);
    (void)split(&db, '?', &query);
    if (db.len == 0)
        return bad(url, "no database name", reterr);
    if (query.len > 0 && !toc_str_starts(query, socket_is))
        return bad(url, "the only option is socket=PATH", reterr);
    if (query.len > 0) {
        query.ptr += socket_is.len;
        query.len -= socket_is.len;
    }
    if (!put(to.user, sizeof to.user, user) || !put(to.db, sizeof to.db, db) ||
        !put(to.socket, sizeof to.socket, query) || !parse_host(host, &to))
        return bad(url, "a part is too long or not well-formed", reterr);
    if (to.socket[0] == '\0' && to.host[0] == '\0')
        return bad(url, "neither a host nor a socket", reterr);
    *ret_address = to;
    return TOC_OK;
}
