#include "common/app/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Names go into topics, keys of etcd and log lines. */
static bool
is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

static enum toc_status
check_name(const char *what, const char *name, size_t max,
           struct toc_error *reterr)
{
    size_t len = strlen(name);
    bool good = len > 0 && len <= max;

    for (size_t i = 0; good && i < len; i++)
        good = is_name_char(name[i]);
    if (good)
        return TOC_OK;
    return toc_error_set(reterr, TOC_INVALID, "config", 0,
                         "%s: \"%.60s\" is not valid, must be 1 to %zu of "
                         "letters, digits, '-', '_' and '.'",
                         what, name, max);
}

static void
name_node(struct toc_common_settings *settings)
{
    char host[TOC_NODE_MAX - 11 + 1]; /* room for '-' and a process id */

    if (gethostname(host, sizeof host) != 0 || host[0] == '\0')
        toc_copy(host, sizeof host, TOC_STR("localhost"));
    host[sizeof host - 1] = '\0'; /* a name that was cut need not end */
    for (char *at = host; *at != '\0'; at++)
        if (!is_name_char(*at))
            *at = '-';
    toc_format(settings->node_text, sizeof settings->node_text, "%s-%ld", host,
               (long)getpid());
    settings->node = settings->node_text;
}

enum toc_status
toc_common_settings_finish(struct toc_common_settings *settings,
                           const char *role, struct toc_error *reterr)
{
    enum toc_status st;

    st = check_name("--cluster", settings->cluster, TOC_CLUSTER_MAX, reterr);
    if (st != TOC_OK)
        return st;
    if (settings->node[0] == '\0')
        name_node(settings);
    st = check_name("--node", settings->node, TOC_NODE_MAX, reterr);
    if (st != TOC_OK)
        return st;
    if (!toc_log_level_parse(toc_str_of(settings->log_level), &settings->level))
        return toc_error_set(reterr, TOC_INVALID, "config", 0,
                             "--log-level: \"%.60s\" is not valid, must be "
                             "debug, info, warn or error",
                             settings->log_level);
    st = toc_password_read(settings->mysql_password_file,
                           settings->mysql_password,
                           sizeof settings->mysql_password, reterr);
    if (st != TOC_OK)
        return st;
    toc_log_init(role, settings->node, settings->level);
    return TOC_OK;
}

static enum toc_status
read_failed(const char *path, struct toc_error *reterr)
{
    int err = errno;

    return toc_error_set(reterr, TOC_INVALID, "config", err,
                         "cannot read the password file \"%.100s\": %s", path,
                         toc_errno_text(err));
}

/* As much as there is, up to cap; -1 with errno. */
static ssize_t
read_up_to(int fd, char *out, size_t cap)
{
    size_t len = 0;

    while (len < cap) {
        ssize_t n = read(fd, out + len, cap - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    return (ssize_t)len;
}

enum toc_status
toc_password_read(const char *path, char *ret, size_t cap,
                  struct toc_error *reterr)
{
    char text[TOC_PASSWORD_MAX + 2];
    struct toc_str rest = {text, 0}, line;
    ssize_t len;
    int fd;

    if (path[0] == '\0') {
        ret[0] = '\0';
        return TOC_OK;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return read_failed(path, reterr);
    len = read_up_to(fd, text, sizeof text);
    if (len < 0) {
        enum toc_status st = read_failed(path, reterr);
        (void)close(fd);
        return st;
    }
    (void)close(fd);
    rest.len = (size_t)len;
    if (!toc_str_next(&rest, '\n', &line))
        line = (struct toc_str){NULL, 0};
    if (line.len > 0 && line.ptr[line.len - 1] == '\r')
        line.len--;
    if (line.len > cap - 1 || toc_str_has_control(line))
        return toc_error_set(reterr, TOC_INVALID, "config", 0,
                             "the first line of \"%.100s\" is not a password: "
                             "too long, or with control characters",
                             path);
    toc_copy(ret, cap, line);
    return TOC_OK;
}

static struct toc_str
trim(struct toc_str s)
{
    while (s.len > 0 && (s.ptr[0] == ' ' || s.ptr[0] == '\t')) {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

bool
toc_list_split(struct toc_str text, struct toc_str *items, size_t max,
               size_t *ret_n)
{
    struct toc_str part;
    size_t n = 0;

    while (toc_str_next(&text, ',', &part)) {
        part = trim(part);
        if (part.len == 0)
            continue;
        if (n == max)
            return false;
        items[n++] = part;
    }
    *ret_n = n;
    return true;
}
