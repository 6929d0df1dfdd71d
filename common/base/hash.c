#include "common/base/hash.h"

#include "common/base/assert.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <string.h>

/* The finaliser of MurmurHash3 (Austin Appleby, public domain). */
uint64_t
toc_hash64_mix(uint64_t value)
{
    value ^= value >> 33;
    value *= UINT64_C(0xff51afd7ed558ccd);
    value ^= value >> 33;
    value *= UINT64_C(0xc4ceb9fe1a85ec53);
    value ^= value >> 33;
    return value;
}

/* MurmurHash64A (Austin Appleby, public domain), with the stronger finaliser
 * of its successor. No seed: a simulation must meet the same order again. */
uint64_t
toc_hash64(const void *bytes, size_t len)
{
    const uint64_t m = UINT64_C(0xc6a4a7935bd1e995);
    const unsigned char *at = bytes;
    uint64_t hash = UINT64_C(0x9e3779b97f4a7c15) ^ ((uint64_t)len * m);
    uint64_t word;

    while (len > 0) {
        size_t n = len < sizeof word ? len : sizeof word;
        word = 0;
        memcpy(&word, at, n);
        word *= m;
        word ^= word >> 47;
        word *= m;
        hash ^= word;
        hash *= m;
        at += n;
        len -= n;
    }
    return toc_hash64_mix(hash);
}

static EVP_MD *sha256_md; /* set once, kept for the life of the process */
static pthread_once_t sha256_once = PTHREAD_ONCE_INIT;

static void
fetch_sha256(void)
{
    sha256_md = EVP_MD_fetch(NULL, "SHA256", NULL);
    TOC_ASSERT(sha256_md != NULL);
}

void
toc_sha256_fields(const struct toc_str *fields, size_t n, uint8_t out[32])
{
    EVP_MD_CTX *ctx;

    pthread_once(&sha256_once, fetch_sha256);
    ctx = EVP_MD_CTX_new();
    TOC_ASSERT(ctx != NULL);
    TOC_ASSERT(EVP_DigestInit_ex(ctx, sha256_md, NULL) == 1);
    for (size_t i = 0; i < n; i++) {
        uint8_t prefix[8];
        uint64_t len = fields[i].len;
        for (size_t k = 8; k-- > 0; len >>= 8)
            prefix[k] = (uint8_t)(len & 0xff);
        TOC_ASSERT(EVP_DigestUpdate(ctx, prefix, sizeof prefix) == 1);
        if (fields[i].len > 0)
            TOC_ASSERT(EVP_DigestUpdate(ctx, fields[i].ptr, fields[i].len) ==
                       1);
    }
    TOC_ASSERT(EVP_DigestFinal_ex(ctx, out, NULL) == 1);
    EVP_MD_CTX_free(ctx);
}
