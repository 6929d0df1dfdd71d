#include "common/model/key.h"

#include "common/base/hash.h"

#include <string.h>

#define BIZ_BYTES 6
#define SLOT_BYTES 6
#define RANDOM_BYTES 4
#define ID_DIGITS 26 /* of 5 bits: 130 bits for 128, so the first is 0 to 7 */

static void
hash_biz(struct toc_str biz_type, struct toc_str biz_id,
         struct toc_key_hash *hash)
{
    const struct toc_str fields[] = {biz_type, biz_id};
    uint8_t digest[32];

    toc_sha256_fields(fields, 2, digest);
    memcpy(hash->b, digest, BIZ_BYTES);
}

struct toc_key_hash
toc_key_hash_of(struct toc_str biz_type, struct toc_str biz_id,
                struct toc_str name)
{
    const struct toc_str fields[] = {biz_type, biz_id, name};
    struct toc_key_hash hash;
    uint8_t digest[32];

    hash_biz(biz_type, biz_id, &hash);
    toc_sha256_fields(fields, 3, digest);
    memcpy(hash.b + BIZ_BYTES, digest, sizeof hash.b - BIZ_BYTES);
    return hash;
}

struct toc_key_hash
toc_key_hash_biz(struct toc_str biz_type, struct toc_str biz_id)
{
    struct toc_key_hash hash = {{0}};

    hash_biz(biz_type, biz_id, &hash);
    return hash;
}

uint16_t
toc_key_shard(struct toc_key_hash hash)
{
    return hash.b[0];
}

static void
put_big_endian(uint8_t *out, size_t n, uint64_t value)
{
    while (n > 0) {
        out[--n] = (uint8_t)(value & 0xff);
        value >>= 8;
    }
}

struct toc_task_id
toc_task_id_make(struct toc_key_hash hash, int64_t slot_ms, uint32_t random)
{
    struct toc_task_id id;

    memcpy(id.b, hash.b, BIZ_BYTES);
    put_big_endian(id.b + BIZ_BYTES, SLOT_BYTES, (uint64_t)slot_ms);
    put_big_endian(id.b + BIZ_BYTES + SLOT_BYTES, RANDOM_BYTES, random);
    return id;
}

int64_t
toc_task_id_first_slot(struct toc_task_id id)
{
    int64_t slot = 0;

    for (size_t i = 0; i < SLOT_BYTES; i++)
        slot = slot * 256 + id.b[BIZ_BYTES + i];
    return slot;
}

/* The bit of the number that the id is, 0 the lowest; beyond it all are 0. */
static unsigned
bit_of(const struct toc_task_id *id, size_t bit)
{
    if (bit >= 8 * sizeof id->b)
        return 0;
    return (unsigned)id->b[sizeof id->b - 1 - bit / 8] >> bit % 8 & 1u;
}

char *
toc_task_id_format(struct toc_task_id id, char dst[TOC_TASK_ID_TEXT_MAX])
{
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

    for (size_t i = 0; i < ID_DIGITS; i++) {
        unsigned value = 0;
        size_t lowest = 5 * (ID_DIGITS - 1 - i);
        for (size_t bit = 5; bit-- > 0;)
            value = value << 1 | bit_of(&id, lowest + bit);
        dst[i] = digits[value];
    }
    dst[ID_DIGITS] = '\0';
    return dst;
}

/* Crockford's values for 'A' to 'Z'; U is left out, I, L and O are misread
 * digits. */
static int
digit_value(char c)
{
    static const int8_t letters[26] = {10, 11, 12, 13, 14, 15, 16, 17, 1,
                                       18, 19, 1,  20, 21, 0,  22, 23, 24,
                                       25, 26, -1, 27, 28, 29, 30, 31};

    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'z')
        return letters[c - 'a'];
    if (c >= 'A' && c <= 'Z')
        return letters[c - 'A'];
    return -1;
}

bool
toc_task_id_parse(struct toc_str text, struct toc_task_id *ret_id)
{
    struct toc_task_id id = {{0}};

    if (text.len != ID_DIGITS || digit_value(text.ptr[0]) > 7)
        return false;
    for (size_t i = 0; i < ID_DIGITS; i++) {
        int value = digit_value(text.ptr[i]);
        size_t lowest = 5 * (ID_DIGITS - 1 - i);
        if (value < 0)
            return false;
        for (size_t bit = 0; bit < 5; bit++) {
            size_t at = lowest + bit;
            if ((value >> bit & 1) != 0)
                id.b[sizeof id.b - 1 - at / 8] |= (uint8_t)(1u << at % 8);
        }
    }
    *ret_id = id;
    return true;
}

int
toc_task_id_cmp(struct toc_task_id a, struct toc_task_id b)
{
    return memcmp(a.b, b.b, sizeof a.b);
}

char *
toc_fire_id_format(struct toc_task_id id, uint32_t fire,
                   char dst[TOC_FIRE_ID_TEXT_MAX])
{
    char text[TOC_TASK_ID_TEXT_MAX];

    toc_format(dst, TOC_FIRE_ID_TEXT_MAX, "%s-%lu",
               toc_task_id_format(id, text), (unsigned long)fire);
    return dst;
}
