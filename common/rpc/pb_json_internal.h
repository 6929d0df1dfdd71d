/* What reading and writing JSON share. Only for this folder. */
#ifndef TOC_RPC_PB_JSON_INTERNAL_H
#define TOC_RPC_PB_JSON_INTERNAL_H

#include "common/rpc/pb_json.h"

#include <stdbool.h>
#include <stdint.h>

/* Nesting of messages that is followed; no message here comes near. */
#define PB_JSON_DEPTH_MAX 32
#define PB_JSON_NAME_MAX 128

/* google.protobuf messages whose JSON is not an object of their fields. */
enum pb_known {
    PB_KNOWN_NONE,
    PB_KNOWN_TIMESTAMP,
    PB_KNOWN_DURATION,
    PB_KNOWN_WRAPPER,
    PB_KNOWN_ANY,
};
enum pb_known pb_known_of(const ProtobufCMessageDescriptor *type);

/* lowerCamelCase of a name in the .proto. */
char *pb_json_name(char out[PB_JSON_NAME_MAX], const char *name);

/* By the last part of a type URL; NULL: not among them. */
const ProtobufCMessageDescriptor *pb_json_type(
    const struct toc_pb_json_types *types, const char *type_url);

void pb_base64_encode(struct toc_str bytes, struct toc_buf *out);
/* Standard or URL alphabet, padding optional. */
bool pb_base64_decode(struct toc_str text, struct toc_buf *out);

/* "2030-01-31T12:00:00.250Z"; false outside the years 0001 to 9999. */
bool pb_time_encode(int64_t seconds, int32_t nanos, struct toc_buf *out);
bool pb_time_decode(struct toc_str text, int64_t *ret_seconds,
                    int32_t *ret_nanos);
/* "1.5s"; false outside what google.protobuf.Duration allows. */
bool pb_duration_encode(int64_t seconds, int32_t nanos, struct toc_buf *out);
bool pb_duration_decode(struct toc_str text, int64_t *ret_seconds,
                        int32_t *ret_nanos);

#endif
