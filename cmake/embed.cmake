# Turns the file IN into a C array in OUT: toc_descriptors, toc_descriptors_len.
file(READ ${IN} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUT} "#include <stddef.h>
extern const unsigned char toc_descriptors[];
extern const size_t toc_descriptors_len;
const unsigned char toc_descriptors[] = {
${bytes}
};
const size_t toc_descriptors_len = sizeof toc_descriptors;
")
