# Turns the files of DIR/*.sql, in the order of their names (NNN_name.sql), into
# the C array toc_my_schema of OUT.
file(GLOB files ${DIR}/*.sql)
list(SORT files)
set(arrays)
set(rows)
foreach(file ${files})
    get_filename_component(name ${file} NAME_WE)
    string(REGEX MATCH "^0*([0-9]+)_" matched ${name})
    set(number ${CMAKE_MATCH_1})
    file(READ ${file} hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
    string(APPEND arrays "static const char sql_${number}[] = {\n${bytes}0};\n")
    string(APPEND rows "    {${number}, \"${name}\", sql_${number}, sizeof sql_${number} - 1},\n")
endforeach()
file(WRITE ${OUT} "#include \"common/store/mysql/schema.h\"

${arrays}
const struct toc_my_schema toc_my_schema[] = {
${rows}};
const size_t toc_my_schema_n = sizeof toc_my_schema / sizeof toc_my_schema[0];
")
