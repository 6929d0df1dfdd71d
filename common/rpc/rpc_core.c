#include "common/rpc/rpc_internal.h"

#include "common/base/assert.h"
#include "common/base/log.h"

#include <limits.h>
#include <string.h>

#define ADDRESS_MAX 300

/* ---- tags and queues ------------------------------------------------ */

void
rpc_tag_init(struct rpc_tag *tag, rpc_tag_fn *fn, void *object)
{
    tag->fn = fn;
    tag->object = object;
    atomic_init(&tag->started, 0);
}

void
rpc_tag_start(struct rpc_tag *tag)
{
    atomic_fetch_add_explicit(&tag->started, 1, memory_order_release);
}

void
rpc_start_batch(grpc_call *call, const grpc_op *ops, size_t n,
                struct rpc_tag *tag)
{
    rpc_tag_start(tag);
    TOC_ASSERT(grpc_call_start_batch(call, ops, n, tag, NULL) == GRPC_CALL_OK);
}

grpc_completion_queue *
rpc_queue_new(void)
{
    return grpc_completion_queue_create_for_next(NULL);
}

void
rpc_queue_run(grpc_completion_queue *queue)
{
    for (;;) {
        grpc_event event = grpc_completion_queue_next(
            queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        if (event.type == GRPC_QUEUE_SHUTDOWN)
            return;
        if (event.type == GRPC_OP_COMPLETE) {
            struct rpc_tag *tag = event.tag;
            (void)atomic_load_explicit(&tag->started, memory_order_acquire);
            tag->fn(tag->object, event.success != 0);
        }
    }
}

/* ---- the library ---------------------------------------------------- */

/* gRPC calls "error" much that a peer causes, and that is said again in the
 * status of the call: a warning is the most it can be. */
static void
log_from_grpc(gpr_log_func_args *args)
{
    if (args->severity == GPR_LOG_SEVERITY_ERROR)
        TOC_LOG(WARN, "grpc.log", F_MSG(args->message),
                F_STR("file", args->file), F_INT("line", args->line));
    else
        TOC_LOG(DEBUG, "grpc.log", F_MSG(args->message),
                F_STR("file", args->file), F_INT("line", args->line));
}

void
rpc_library_init(void)
{
    gpr_set_log_function(log_from_grpc);
    gpr_set_log_verbosity(toc_log_on(TOC_LOG_DEBUG) ? GPR_LOG_SEVERITY_INFO
                                                    : GPR_LOG_SEVERITY_ERROR);
    grpc_init();
}

void
rpc_library_done(void)
{
    /* Not grpc_shutdown: it ends in a thread of its own, which may still run
     * when main returns. */
    grpc_shutdown_blocking();
}

/* ---- time and codes ------------------------------------------------- */

gpr_timespec
rpc_deadline_to_grpc(const struct toc_clock *clk, struct toc_mono deadline)
{
    int64_t now = toc_clock_mono(clk).ns;
    int64_t left;

    if (deadline.ns == INT64_MAX)
        return gpr_inf_future(GPR_CLOCK_MONOTONIC);
    if (__builtin_sub_overflow(deadline.ns, now, &left))
        left = deadline.ns < now ? INT64_MIN / 2 : INT64_MAX / 2;
    return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                        gpr_time_from_nanos(left, GPR_TIMESPAN));
}

struct toc_mono
rpc_deadline_from_grpc(const struct toc_clock *clk, gpr_timespec deadline)
{
    gpr_timespec never = gpr_inf_future(deadline.clock_type);
    gpr_timespec left;
    struct toc_mono mono = {INT64_MAX};
    int64_t left_ns;

    if (gpr_time_cmp(deadline, never) == 0)
        return mono;
    left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
    if (left.tv_sec > INT32_MAX)
        return mono;
    if (left.tv_sec < INT32_MIN)
        left.tv_sec = INT32_MIN;
    left_ns = left.tv_sec * INT64_C(1000000000) + left.tv_nsec;
    if (__builtin_add_overflow(toc_clock_mono(clk).ns, left_ns, &mono.ns))
        mono.ns = INT64_MAX;
    return mono;
}

enum toc_status
rpc_status_from_grpc(grpc_status_code code)
{
    if ((int)code < 0 || (int)code > (int)TOC_UNAUTHENTICATED)
        return TOC_UNKNOWN;
    return (enum toc_status)code;
}

/* ---- bytes ---------------------------------------------------------- */

struct toc_str
rpc_slice_view(const grpc_slice *slice)
{
    return (struct toc_str){(const char *)GRPC_SLICE_START_PTR(*slice),
                            GRPC_SLICE_LENGTH(*slice)};
}

grpc_slice
rpc_slice_copy(struct toc_str s)
{
    return grpc_slice_from_copied_buffer(s.len > 0 ? s.ptr : "", s.len);
}

struct toc_str
rpc_buffer_view(grpc_byte_buffer *buffer, struct toc_arena *arena)
{
    grpc_byte_buffer_reader reader;
    grpc_slice *slice;
    struct toc_str bytes = {0};
    char *copy = NULL;
    size_t len, done = 0;

    if (buffer == NULL || !grpc_byte_buffer_reader_init(&reader, buffer))
        return bytes;
    len = grpc_byte_buffer_length(buffer);
    while (grpc_byte_buffer_reader_peek(&reader, &slice)) {
        struct toc_str piece = rpc_slice_view(slice);
        bytes = piece;
        if (copy == NULL && piece.len == len)
            break;
        if (copy == NULL)
            copy = toc_arena_alloc(arena, len);
        TOC_ASSERT(piece.len <= len - done);
        memcpy(copy + done, piece.ptr, piece.len);
        done += piece.len;
    }
    grpc_byte_buffer_reader_destroy(&reader);
    return copy != NULL ? (struct toc_str){copy, done} : bytes;
}

grpc_byte_buffer *
rpc_buffer_of_message(const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    grpc_slice slice = grpc_slice_malloc(size);
    grpc_byte_buffer *buffer;

    TOC_ASSERT(protobuf_c_message_pack(message, GRPC_SLICE_START_PTR(slice)) ==
               size);
    buffer = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);
    return buffer;
}

grpc_byte_buffer *
rpc_buffer_of_bytes(struct toc_str bytes)
{
    grpc_slice slice = rpc_slice_copy(bytes);
    grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);

    grpc_slice_unref(slice);
    return buffer;
}

/* ---- metadata ------------------------------------------------------- */

bool
rpc_metadata_legal(struct toc_str name, struct toc_str value)
{
    grpc_slice key = grpc_slice_from_static_buffer(name.ptr, name.len);
    grpc_slice val = grpc_slice_from_static_buffer(value.ptr, value.len);

    if (name.len == 0 || !grpc_header_key_is_legal(key))
        return false;
    return grpc_is_binary_header(key) || grpc_header_nonbin_value_is_legal(val);
}

bool
rpc_metadata_find(const grpc_metadata_array *array, const char *name,
                  struct toc_str *ret_value)
{
    struct toc_str wanted = toc_str_of(name);

    for (size_t i = 0; i < array->count; i++) {
        if (!toc_str_eq(rpc_slice_view(&array->metadata[i].key), wanted))
            continue;
        *ret_value = rpc_slice_view(&array->metadata[i].value);
        return true;
    }
    return false;
}

/* ---- addresses and arguments ---------------------------------------- */

static bool
host_ok(struct toc_str host)
{
    bool bracketed = host.len > 2 && host.ptr[0] == '[';

    if (bracketed) {
        if (host.ptr[host.len - 1] != ']')
            return false;
        host.ptr++;
        host.len -= 2;
    }
    for (size_t i = 0; i < host.len; i++) {
        char c = host.ptr[i];
        bool name = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                    (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
        if (!name && !(bracketed && (c == ':' || c == '%')))
            return false;
    }
    return host.len > 0;
}

bool
rpc_address_split(const char *address, bool zero_ok, struct toc_str *ret_host,
                  int *ret_port)
{
    struct toc_str text = toc_str_of(address);
    const char *colon = address != NULL ? strrchr(address, ':') : NULL;
    struct toc_str host, port;
    int64_t number;

    if (colon == NULL || text.len > ADDRESS_MAX)
        return false;
    host = (struct toc_str){address, (size_t)(colon - address)};
    port = toc_str_of(colon + 1);
    if (!host_ok(host) ||
        !toc_parse_i64(port, zero_ok ? 0 : 1, UINT16_MAX, &number))
        return false;
    *ret_host = host;
    *ret_port = (int)number;
    return true;
}

grpc_arg
rpc_arg(const char *key, int value)
{
    return (grpc_arg){
        .type = GRPC_ARG_INTEGER, .key = (char *)key, .value.integer = value};
}
