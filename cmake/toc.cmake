# How TOC is put together: compiler flags, and one library per box.
#
# A box is a folder with its own header(s). It sees only its own headers and
# those of the boxes it names: each box exports an include folder that holds
# links to nothing but its own headers, and links are PRIVATE. An include that
# the architecture does not allow therefore fails the build.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

option(TOC_WERROR "Treat warnings as errors" ON)
set(TOC_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize=")

add_library(toc_flags INTERFACE)
target_compile_definitions(toc_flags INTERFACE
    _POSIX_C_SOURCE=200809L TOC_VERSION="${PROJECT_VERSION}")
target_compile_options(toc_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes
    -Wmissing-prototypes -Wformat=2 -Wconversion -Wswitch-enum -Wvla
    -fno-omit-frame-pointer
    # librdkafka's macros, expanded in our code
    $<$<C_COMPILER_ID:Clang>:-Wno-gnu-statement-expression>
    $<$<BOOL:${TOC_WERROR}>:-Werror>)
if(TOC_SANITIZE)
    target_compile_options(toc_flags INTERFACE
        -fsanitize=${TOC_SANITIZE} -fno-sanitize-recover=all)
    target_link_options(toc_flags INTERFACE -fsanitize=${TOC_SANITIZE})
endif()

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(GRPC REQUIRED IMPORTED_TARGET grpc)
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
# The MySQL C API: MariaDB's library, or MySQL's own where that one is not there.
pkg_search_module(MYSQL REQUIRED IMPORTED_TARGET libmariadb mysqlclient)
pkg_check_modules(RDKAFKA REQUIRED IMPORTED_TARGET rdkafka)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl)
pkg_check_modules(CRYPTO REQUIRED IMPORTED_TARGET libcrypto)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(CHECK REQUIRED IMPORTED_TARGET check)

# Links one by one the headers of DIR into the include folder of box NAME.
function(toc_export_headers name dir)
    set(view ${CMAKE_BINARY_DIR}/boxes/${name})
    file(MAKE_DIRECTORY ${view}/${dir})
    file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${dir}/*.h)
    foreach(header ${headers})
        get_filename_component(file ${header} NAME)
        file(CREATE_LINK ${header} ${view}/${dir}/${file} SYMBOLIC)
    endforeach()
endfunction()

# toc_box(NAME DIR [DIRS more folders of the same box...] [DEPS boxes...] [VENDOR targets...])
#
# The sources are the *.c of the folders, less main.c.
function(toc_box name dir)
    cmake_parse_arguments(arg "" "" "DIRS;DEPS;VENDOR" ${ARGN})
    set(sources)
    foreach(folder ${dir} ${arg_DIRS})
        toc_export_headers(${name} ${folder})
        file(GLOB found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.c)
        list(APPEND sources ${found})
    endforeach()
    list(FILTER sources EXCLUDE REGEX "/main\\.c$")
    set(includes ${CMAKE_BINARY_DIR}/boxes/${name})
    if(sources)
        add_library(${name} STATIC ${sources})
        target_include_directories(${name} PUBLIC ${includes})
        target_link_libraries(${name}
            PRIVATE toc_flags ${arg_DEPS} ${arg_VENDOR} Threads::Threads)
    else()
        add_library(${name} INTERFACE)
        target_include_directories(${name} INTERFACE ${includes})
    endif()
endfunction()

# toc_program(NAME SOURCES... DEPS boxes... [VENDOR targets...])
function(toc_program name)
    cmake_parse_arguments(arg "" "" "SOURCES;DEPS;VENDOR" ${ARGN})
    add_executable(${name} ${arg_SOURCES})
    target_link_libraries(${name}
        PRIVATE toc_flags ${arg_DEPS} ${arg_VENDOR} Threads::Threads)
endfunction()
