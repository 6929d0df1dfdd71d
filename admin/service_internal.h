/* What the parts of the service share. Only for this folder. */
#ifndef TOC_ADMIN_SERVICE_INTERNAL_H
#define TOC_ADMIN_SERVICE_INTERNAL_H

#include "admin/names.h"
#include "admin/service.h"
#include "common/rpc/client.h"

#include "toc/v1/admin.pb-c.h"

/* Of one answer; the largest task (a full payload, spec and error) fits
 * beside it in the 4 MiB that clients take by default. */
#define ADMIN_ANSWER_BYTES_MAX (2u * 1024 * 1024 + 512 * 1024)

/* One call while a worker is at it. */
struct admin_call {
    struct admin_service *service;
    struct toc_rpc_call *rpc;
    struct toc_arena *arena; /* the call's */
    const ProtobufCMessage *request;
    struct admin_names_user names;
    int64_t now_ms;
};

struct toc_store *admin_call_store(const struct admin_call *call);
struct toc_coord *admin_call_coord(const struct admin_call *call);
const struct toc_clock *admin_call_clock(const struct admin_call *call);
/* For questions to other processes. */
struct toc_rpc_client *admin_call_client(const struct admin_call *call);
int64_t admin_call_list_ms_max(const struct admin_call *call);

/* Answers with the store's or coord's error; logs it when it is ours. */
void admin_fail_error(struct admin_call *call, enum toc_status st,
                      const struct toc_error *error);

/* Each answers the call exactly once. */
typedef void admin_handler_fn(struct admin_call *call);
admin_handler_fn admin_list_tasks;
admin_handler_fn admin_get_timeline;
admin_handler_fn admin_list_dead;
admin_handler_fn admin_redrive_dead;
admin_handler_fn admin_list_buckets;
admin_handler_fn admin_list_shards;
admin_handler_fn admin_list_nodes;

#endif
