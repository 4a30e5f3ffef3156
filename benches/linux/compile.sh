# Compiles Linux's disciplines as they are, with stand-ins for the rest of the kernel; sourced by
# benches/linux.sh and conformance/fuzz-linux.sh.
#
# link_linux SOURCE HERE KIND PROGRAM [HZ]: makes PROGRAM from Linux's source tree SOURCE with its
# generated headers (conformance/build-linux.sh leaves them), and from what stands in HERE: for KIND
# bench kernel.c and main.c, for KIND oracle oracle.c, oracle-main.c and oracle-cake.c. HZ is that of
# the source's configuration if it is not given.
link_linux() (
    source=$1 here=$2 kind=$3 program=$4 hz=${5-}
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    cd "$source"
    # The kernel's flags for user mode, less those for its own small memory model and its warnings.
    um=arch/um/include x86=arch/x86/include
    flags=(-O2 -std=gnu11 -fms-extensions -w -nostdinc -DMODULE -D__KERNEL__ -D__arch_um__ -m64
        -fno-strict-aliasing -fno-common -fshort-wchar -fno-PIE -fno-builtin -fno-stack-protector
        -fno-delete-null-pointer-checks -fno-allow-store-data-races -fno-strict-overflow
        -fomit-frame-pointer -fconserve-stack
        -I$um -I$um/generated -Iinclude -I$um/uapi -I$um/generated/uapi -Iinclude/uapi
        -Iinclude/generated/uapi -Iarch/x86/um -I$x86 -I$x86/uapi -I$x86/generated
        -I$x86/generated/uapi -I$um/shared -Iarch/x86/um/shared -I$um/shared/skas
        -include include/linux/compiler-version.h -include include/linux/kconfig.h
        -include include/linux/compiler_types.h)
    # Behind the source's own configuration. No filters stand here, which it may have.
    printf '#undef CONFIG_%s\n' NET_CLS NET_CLS_ACT >"$work/configuration.h"
    flags+=(-include "$work/configuration.h")
    if [ -n "$hz" ]; then
        mkdir "$work/generated"
        echo "$hz" | bc -q kernel/time/timeconst.bc >"$work/generated/timeconst.h"
        printf '#undef CONFIG_HZ\n#define CONFIG_HZ %s\n' "$hz" >>"$work/configuration.h"
        # In front of what was generated for the source's own HZ.
        flags=("-I$work" "${flags[@]}")
    fi

    # compile FILE NAME [FLAG...]: each file's registration gets a name of its own, for all stand in
    # one program.
    compile() {
        local file=$1 name=$2
        shift 2
        gcc "${flags[@]}" "$@" "-DKBUILD_MODFILE=\"$name\"" "-DKBUILD_BASENAME=\"$name\"" \
            "-DKBUILD_MODNAME=\"$name\"" "-D__KBUILD_MODNAME=kmod_$name" \
            "-Dinit_module=init_$name" "-Dcleanup_module=exit_$name" -c -o "$work/$name.o" "$file"
    }

    modules="codel pie red tbf htb drr fq_codel fq_pie cake sfq sfb"
    if [ -e net/sched/sch_dualpi2.c ]; then modules+=" dualpi2"; fi
    hooks=()
    if [ "$kind" = oracle ]; then hooks=(-include "$here/oracle-hooks.h"); fi
    for name in $modules generic api fifo; do
        case $kind-$name in
            oracle-cake | oracle-sfb)
                compile "$here/oracle-$name.c" "$name" "${hooks[@]}" -I. "-I$here" ;;
            *) compile "net/sched/sch_$name.c" "$name" "${hooks[@]}" ;;
        esac
    done
    compile net/core/flow_dissector.c dissector
    compile lib/siphash.c siphash
    compile lib/rbtree.c rbtree
    compile lib/math/reciprocal_div.c reciprocal_div
    case $kind in
        oracle) compile "$here/oracle.c" kernel "-I$here" && main=oracle-main.c ;;
        *) compile "$here/kernel.c" kernel "-I$here" && main=main.c ;;
    esac
    {
        echo "#include \"$here/bench.h\""
        for name in $modules dissector; do echo "int init_$name(void);"; done
        echo "void bench_register_all(void) {"
        for name in $modules dissector; do echo "init_$name();"; done
        echo "}"
    } >"$work/register.c"
    gcc -O2 -c -o "$work/main.o" "$here/$main"
    gcc -O2 -c -o "$work/register.o" "$work/register.c"
    # kernel.o comes first: what it defines stands in for the kernel's own.
    gcc -no-pie -Wl,-z,muldefs,--unresolved-symbols=ignore-all -o "$program" \
        "$work/kernel.o" "$work/main.o" $(ls "$work"/*.o | grep -v -e /kernel.o -e /main.o)
)
