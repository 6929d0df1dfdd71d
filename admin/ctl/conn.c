#include "admin/ctl/conn.h"

#include "admin/ctl/text.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/base/config.h"
#include "common/rpc/rpc.h"
#include "toc/v1/admin.pb-c.h"
#include "toc/v1/timeout.pb-c.h"

#include <string.h>

enum ctl_exit
ctl_exit_of(enum toc_status st)
{
    switch (st) {
    case TOC_OK:
        return CTL_OK;
    case TOC_INVALID:
    case TOC_RANGE:
        return CTL_USAGE;
    case TOC_NOT_FOUND:
        return CTL_NOT_FOUND;
    case TOC_EXISTS:
    case TOC_PRECONDITION:
    case TOC_CONFLICT:
        return CTL_CONFLICT;
    case TOC_DEADLINE:
    case TOC_EXHAUSTED:
    case TOC_UNAVAILABLE:
        return CTL_UNAVAILABLE;
    case TOC_CANCELLED:
    case TOC_UNKNOWN:
    case TOC_DENIED:
    case TOC_UNIMPLEMENTED:
    case TOC_INTERNAL:
    case TOC_DATA_LOSS:
    case TOC_UNAUTHENTICATED:
        break;
    }
    return CTL_FAILED;
}

static const char *
hint_for(enum toc_status st)
{
    switch (st) {
    case TOC_NOT_FOUND:
        return "a key is biz_type/biz_id[/name]; ended tasks are kept for the "
               "cluster's retention time only";
    case TOC_EXISTS:
        return "look at it with `tocctl describe`; --on-conflict keep or "
               "replace decides otherwise";
    case TOC_CONFLICT:
        return "the task changed meanwhile: get it again for its new etag";
    case TOC_DEADLINE:
        return "the outcome is not known: look with `tocctl get`, or allow "
               "more with --timeout";
    case TOC_EXHAUSTED:
        return "it is overloaded: try again in a moment";
    case TOC_UNAVAILABLE:
        return "is the address right, are the process and its database up? "
               "`tocctl health HOST:PORT` tells";
    case TOC_UNIMPLEMENTED:
        return "the server is of another version; see `tocctl version`";
    case TOC_OK:
    case TOC_CANCELLED:
    case TOC_UNKNOWN:
    case TOC_INVALID:
    case TOC_DENIED:
    case TOC_PRECONDITION:
    case TOC_RANGE:
    case TOC_INTERNAL:
    case TOC_DATA_LOSS:
    case TOC_UNAUTHENTICATED:
        break;
    }
    return NULL;
}

/* Is the message only the first of the violations that follow it? */
static bool
repeats(struct toc_str first, struct toc_str rest)
{
    struct toc_str line;

    if (!toc_str_next(&rest, '\n', &line) ||
        !toc_str_starts(line, TOC_STR("  ")))
        return false;
    line.ptr += 2;
    line.len -= 2;
    return toc_str_eq(line, first);
}

/* text: a message, then violations on lines of their own. */
static enum ctl_exit
report(struct ctl *ctl, const char *what, enum toc_status st,
       struct toc_str text)
{
    const char *hint = hint_for(st);
    struct toc_str line = {NULL, 0};

    (void)toc_str_next(&text, '\n', &line);
    if (line.len == 0)
        line = toc_str_of(toc_status_text(st));
    else if (repeats(line, text))
        line = TOC_STR("not valid");
    fprintf(ctl->err, "error: %s%s%s\n", what != NULL ? what : "",
            what != NULL ? ": " : "", ctl_safe(&ctl->arena, line));
    while (toc_str_next(&text, '\n', &line))
        if (line.len > 0)
            fprintf(ctl->err, "%s\n", ctl_safe(&ctl->arena, line));
    if (hint != NULL)
        fprintf(ctl->err, "hint: %s\n", hint);
    return ctl_exit_of(st);
}

static enum ctl_exit
report_call(struct ctl *ctl, const char *what, enum toc_status st,
            struct toc_str details, const struct toc_error *error)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf text = {0};

    if (details.len > 0)
        toc_rpc_failure_text(details, &text);
    if (text.len == 0)
        toc_buf_text(&text, error->msg);
    return report(ctl, what, st,
                  text.len > 0 ? toc_buf_view(&text)
                               : toc_str_of(toc_status_text(st)));
}

enum ctl_exit
ctl_item_error(struct ctl *ctl, const char *what,
               const Google__Rpc__Status *error)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf packed = {0};
    TOC_CLEANUP(toc_buf_done) struct toc_buf text = {0};
    enum toc_status st = TOC_UNKNOWN;

    if (error->code > 0 && error->code <= TOC_UNAUTHENTICATED)
        st = (enum toc_status)error->code;
    toc_rpc_pack(&error->base, &packed);
    toc_rpc_failure_text(toc_buf_view(&packed), &text);
    return report(ctl, what, st,
                  text.len > 0 ? toc_buf_view(&text)
                               : toc_str_of(error->message));
}

bool
ctl_address_valid(struct toc_str address)
{
    size_t colon = address.len;
    int64_t port;

    while (colon > 0 && address.ptr[colon - 1] != ':')
        colon--;
    return colon > 1 && address.len < 256 && !toc_str_has_control(address) &&
           toc_parse_i64(
               (struct toc_str){address.ptr + colon, address.len - colon}, 1,
               65535, &port);
}

/* ---- where the services are ---- */

static enum ctl_exit
split_addresses(struct ctl *ctl, const char *text, const char *setting,
                struct ctl_addresses *out)
{
    struct toc_str rest = toc_str_of(text), part;

    while (toc_str_next(&rest, ',', &part)) {
        if (part.len == 0)
            continue;
        if (!ctl_address_valid(part) || out->n == CTL_ADDRESSES_MAX)
            return ctl_fail(ctl, CTL_USAGE,
                            "addresses look like 127.0.0.1:7000 and are "
                            "separated by commas",
                            "%s: not an address: %s", setting,
                            ctl_safe(&ctl->arena, part));
        out->at[out->n++] = toc_arena_text(&ctl->keep, part);
    }
    if (out->n == 0)
        return ctl_fail(ctl, CTL_USAGE, NULL, "%s is empty", setting);
    return CTL_OK;
}

/* From the flag, else the environment; none is no error here. */
static enum ctl_exit
given_addresses(struct ctl *ctl, const char *flag, const char *env,
                struct ctl_addresses *out)
{
    const char *text = ctl_flag(ctl, flag);

    if (text != NULL)
        return split_addresses(
            ctl, text, toc_arena_printf(&ctl->arena, "--%s", flag), out);
    text = toc_env(env);
    if (text != NULL && text[0] != '\0')
        return split_addresses(ctl, text, env, out);
    return CTL_OK;
}

static enum ctl_exit
find_admins(struct ctl *ctl)
{
    enum ctl_exit end;

    if (ctl->admins.n > 0)
        return CTL_OK;
    end = given_addresses(ctl, "admin", "TOC_ADMIN", &ctl->admins);
    if (end != CTL_OK || ctl->admins.n > 0)
        return end;
    return ctl_fail(ctl, CTL_USAGE, "give --admin HOST:PORT, or set TOC_ADMIN",
                    "no address of an admin process");
}

static enum ctl_exit
discover_schedulers(struct ctl *ctl)
{
    Toc__V1__ListNodesRequest request = TOC__V1__LIST_NODES_REQUEST__INIT;
    ProtobufCMessage *reply;
    Toc__V1__ListNodesResponse *nodes;
    enum ctl_exit end =
        ctl_call_admin(ctl, "ListNodes", NULL, &request.base, &reply);

    if (end != CTL_OK)
        return end;
    nodes = (Toc__V1__ListNodesResponse *)reply;
    for (size_t i = 0; i < nodes->n_nodes; i++) {
        const Toc__V1__Node *node = nodes->nodes[i];
        if (strcmp(node->role, "scheduler") == 0 &&
            ctl_address_valid(toc_str_of(node->address)) &&
            ctl->schedulers.n < CTL_ADDRESSES_MAX)
            ctl->schedulers.at[ctl->schedulers.n++] =
                toc_arena_text(&ctl->keep, toc_str_of(node->address));
    }
    if (ctl->schedulers.n == 0)
        return ctl_fail(ctl, CTL_UNAVAILABLE, "tocctl nodes",
                        "the admin knows of no scheduler that is up");
    return CTL_OK;
}

static enum ctl_exit
find_schedulers(struct ctl *ctl)
{
    struct ctl_addresses admins = {.n = 0};
    enum ctl_exit end;

    if (ctl->schedulers.n > 0)
        return CTL_OK;
    end = given_addresses(ctl, "scheduler", "TOC_SCHEDULER", &ctl->schedulers);
    if (end != CTL_OK || ctl->schedulers.n > 0)
        return end;
    end = given_addresses(ctl, "admin", "TOC_ADMIN", &admins);
    if (end != CTL_OK)
        return end;
    if (admins.n == 0)
        return ctl_fail(ctl, CTL_USAGE,
                        "give --scheduler HOST:PORT or set TOC_SCHEDULER; or "
                        "--admin or TOC_ADMIN, and the schedulers are found "
                        "through it",
                        "no address of a scheduler");
    return discover_schedulers(ctl);
}

/* ---- calls ---- */

enum toc_status
ctl_call_address(struct ctl *ctl, const char *address,
                 const ProtobufCServiceDescriptor *service, const char *method,
                 const ProtobufCMessage *request, int64_t timeout_ms,
                 ProtobufCMessage **ret_reply, struct toc_error *reterr)
{
    struct toc_str details = {NULL, 0};

    return ctl->transport(ctl->transport_arg, address, service, method, request,
                          timeout_ms, &ctl->arena, ret_reply, &details, reterr);
}

struct calling {
    const ProtobufCServiceDescriptor *service;
    const char *method, *what;
    const ProtobufCMessage *request;
};

/* Each address gets an even share of what is left of the timeout. An address
 * that is UNAVAILABLE did nothing, or what it did can be done again: commands
 * are compare-and-set, and every submit has a key. */
static enum ctl_exit
call_any(struct ctl *ctl, const struct ctl_addresses *addresses,
         const struct calling *calling, ProtobufCMessage **ret_reply)
{
    int64_t timeout_ms =
        ctl->timeout_ms > 0 ? ctl->timeout_ms : CTL_TIMEOUT_MS_DEFAULT;
    struct toc_mono end = toc_mono_add_ms(toc_clock_mono(ctl->clk), timeout_ms);
    struct toc_str details = {NULL, 0};
    struct toc_error error = {.status = TOC_UNAVAILABLE};
    enum toc_status st = TOC_UNAVAILABLE;

    for (size_t i = 0; i < addresses->n; i++) {
        int64_t left_ms =
            (end.ns - toc_clock_mono(ctl->clk).ns) / TOC_NS_PER_MS;
        int64_t share_ms = left_ms / (int64_t)(addresses->n - i);
        if (left_ms <= 0)
            break;
        details = (struct toc_str){NULL, 0};
        st = ctl->transport(ctl->transport_arg, addresses->at[i],
                            calling->service, calling->method, calling->request,
                            share_ms > 0 ? share_ms : 1, &ctl->arena, ret_reply,
                            &details, &error);
        if (st == TOC_OK)
            return CTL_OK;
        if (st != TOC_UNAVAILABLE)
            break;
    }
    return report_call(ctl, calling->what, st, details, &error);
}

enum ctl_exit
ctl_call_scheduler(struct ctl *ctl, const char *method, const char *what,
                   const ProtobufCMessage *request,
                   ProtobufCMessage **ret_reply)
{
    struct calling calling = {&toc__v1__timeout_service__descriptor, method,
                              what, request};
    enum ctl_exit end = find_schedulers(ctl);

    return end != CTL_OK ? end
                         : call_any(ctl, &ctl->schedulers, &calling, ret_reply);
}

enum ctl_exit
ctl_call_admin(struct ctl *ctl, const char *method, const char *what,
               const ProtobufCMessage *request, ProtobufCMessage **ret_reply)
{
    struct calling calling = {&toc__v1__admin_service__descriptor, method, what,
                              request};
    enum ctl_exit end = find_admins(ctl);

    return end != CTL_OK ? end
                         : call_any(ctl, &ctl->admins, &calling, ret_reply);
}
