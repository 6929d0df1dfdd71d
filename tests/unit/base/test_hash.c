/*
 * Goal: SHA-256 over fields is what its header says, for stored keys depend on
 * it; the fast hash spreads.
 * Method: values computed by another implementation (sha256sum over the same
 * bytes); counts of buckets and of flipped bits.
 */
#include "common/base/hash.h"

#include "common/base/buf.h"
#include "common/base/cleanup.h"

#include "tests/support/toc_check.h"

#include <string.h>

static void
check_sha256(const struct toc_str *fields, size_t n, const char *want)
{
    TOC_CLEANUP(toc_buf_done) struct toc_buf hex = {0};
    uint8_t digest[32];

    toc_sha256_fields(fields, n, digest);
    toc_buf_hex(&hex, digest, sizeof digest);
    ck_assert_str_eq(hex.data, want);
}

START_TEST(sha256_known_values)
{
    const struct toc_str two[] = {TOC_STR("ab"), TOC_STR("c")};
    const struct toc_str other[] = {TOC_STR("a"), TOC_STR("bc")};
    const struct toc_str empty = {NULL, 0};

    check_sha256(NULL, 0,
                 "e3b0c44298fc1c149afbf4c8996fb924"
                 "27ae41e4649b934ca495991b7852b855");
    check_sha256(&empty, 1,
                 "af5570f5a1810b7af78caf4bc70a660f"
                 "0df51e42baf91d4de5b2328de0e83dfc");
    check_sha256(two, 2,
                 "601d5476e2ccfe2c87a2bba7a3226597"
                 "34a05749d5b5aa781f513e4912db0d5f");
    check_sha256(other, 2,
                 "3fafa1cf2f19a7c1129beb20cf0983f7"
                 "3a489a221fc0dd2f16d1be292d089205");
}
END_TEST

START_TEST(every_length_differs)
{
    char zeros[64] = {0};
    uint64_t seen[65];

    for (size_t len = 0; len <= 64; len++) {
        seen[len] = toc_hash64(zeros, len);
        for (size_t i = 0; i < len; i++)
            ck_assert(seen[i] != seen[len]);
        ck_assert(toc_hash64(zeros, len) == seen[len]);
    }
}
END_TEST

START_TEST(every_bit_counts)
{
    unsigned char bytes[21] = "some bytes to change";
    uint64_t before = toc_hash64(bytes, sizeof bytes);

    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        int flipped;
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        flipped =
            __builtin_popcountll(before ^ toc_hash64(bytes, sizeof bytes));
        ck_assert_int_ge(flipped, 12);
        ck_assert_int_le(flipped, 52);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
}
END_TEST

START_TEST(neighbours_spread_over_buckets)
{
    unsigned counts[256] = {0};

    for (uint64_t i = 0; i < 25600; i++)
        counts[toc_hash64(&i, sizeof i) & 255]++;
    for (size_t i = 0; i < 256; i++) {
        ck_assert_uint_ge(counts[i], 50);
        ck_assert_uint_le(counts[i], 150);
    }
    memset(counts, 0, sizeof counts);
    for (uint64_t i = 0; i < 25600; i++)
        counts[toc_hash64_mix(i << 40) & 255]++;
    for (size_t i = 0; i < 256; i++) {
        ck_assert_uint_ge(counts[i], 50);
        ck_assert_uint_le(counts[i], 150);
    }
}
END_TEST

TOC_CHECK_MAIN("hash", sha256_known_values, every_length_differs,
               every_bit_counts, neighbours_spread_over_buckets)
