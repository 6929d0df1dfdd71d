/*
 * The serialized google.protobuf.FileDescriptorSet of every .proto in this
 * folder and its imports: what server reflection answers from.
 */
#ifndef TOC_PROTO_DESCRIPTORS_H
#define TOC_PROTO_DESCRIPTORS_H

#include <stddef.h>

extern const unsigned char toc_descriptors[];
extern const size_t toc_descriptors_len;

#endif
