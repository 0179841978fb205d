"""Reserved names of the C++ core: from the language, its headers and their macros, and the emitted text.

A test preprocesses the headers with `g++ -dM -E` and compiles every name of theirs, so that the lists are complete.
"""

from __future__ import annotations

import re

#: Keywords and other reserved words of C++14 and of the headers.
_WORDS = frozenset(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class compl const
    const_cast constexpr continue decltype default delete do double dynamic_cast else enum explicit export extern false
    float for friend goto if inline int long main mutable namespace new noexcept not not_eq nullptr operator or or_eq
    private protected public register reinterpret_cast return short signed sizeof static static_assert static_cast
    struct switch template this thread_local throw true try typedef typeid typename union unsigned using virtual void
    volatile wchar_t while xor xor_eq hg hls std in out m_axis s_axis take_frame send_frame weights
    linux unix i386 min max AESL_std P_tmpdir Slong Ulong fd_mask fd_set getdate_err ssdm_int_sim tzname u_char u_int
    u_long u_short ulong ushort retval sched_priority va_list valtype""".split()
)
#: Macros and variables of C's headers in lower case.
_C = frozenset(
    """alloca assert assert_perror daylight environ errno fpclassify isfinite isgreater isgreaterequal isinf isless
    islessequal islessgreater isnan isnormal issubnormal isunordered math_errhandling offsetof optarg opterr optind
    optopt program_invocation_name program_invocation_short_name signbit signgam stderr stdin stdout strdupa strndupa
    timezone va_arg va_copy va_end va_start""".split()
)
#: Macros in upper case begin with one of these and an underscore, or are one of these words.
_PREFIXES = frozenset(
    """AC ADJ AF AIO ALL AP APFX ASSIGN ATOMIC AXIS BC BIG BIN BIT BOOL BYTE C CHAR CHARCLASS CLOCK CLOCKS CLONE COLL
    CONCAT CPU DBL DECIMAL DELAYTIMER DOUBLE EXIT EXPR FD FE FILENAME FLOAT FLT FOPEN FP FX HALF HG HLS HOST HUGE INIT
    INT INT16 INT32 INT64 INT8 INTMAX INTPTR IOV L LC LDBL LINE LITTLE LLONG LLVM LOGIN LONG M MATH MAX MB MOD MQ NAME
    NGROUPS NL OP OPS P PATH PDP PIPE PRIO PTHREAD PTRDIFF RAND RE REF REL RENAME RLIM RLIM64 RLIMIT RTSIG RUSAGE SC
    SCHAR SCHED SEEK SEM SHRT SIG SIZE SPECIAL SSIZE STA TIME TIMER TMP TTY UCHAR UINT UINT16 UINT32 UINT64 UINT8
    UINTMAX UINTPTR ULLONG ULONG USHRT WCHAR WINT WORD XATTR""".split()
)
_MACROS = frozenset(
    """BIAS BUFSIZ CSIGNAL E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EADV EAFNOSUPPORT EAGAIN EALREADY EBADE EBADF EBADFD
    EBADMSG EBADR EBADRQC EBADSLT EBFONT EBUSY ECANCELED ECHILD ECHRNG ECOMM ECONNABORTED ECONNREFUSED ECONNRESET
    EDEADLK EDEADLOCK EDESTADDRREQ EDOM EDOTDOT EDQUOT EEXIST EFAULT EFBIG EHOSTDOWN EHOSTUNREACH EHWPOISON EIDRM EILSEQ
    EINPROGRESS EINTR EINVAL EIO EISCONN EISDIR EISNAM EKEYEXPIRED EKEYREJECTED EKEYREVOKED EL2HLT EL2NSYNC EL3HLT
    EL3RST ELIBACC ELIBBAD ELIBEXEC ELIBMAX ELIBSCN ELNRNG ELOOP EMEDIUMTYPE EMFILE EMLINK EMSGSIZE EMULTIHOP
    ENAMETOOLONG ENAVAIL ENETDOWN ENETRESET ENETUNREACH ENFILE ENOANO ENOBUFS ENOCSI ENODATA ENODEV ENOENT ENOEXEC
    ENOKEY ENOLCK ENOLINK ENOMEDIUM ENOMEM ENOMSG ENONET ENOPKG ENOPROTOOPT ENOSPC ENOSR ENOSTR ENOSYS ENOTBLK ENOTCONN
    ENOTDIR ENOTEMPTY ENOTNAM ENOTRECOVERABLE ENOTSOCK ENOTSUP ENOTTY ENOTUNIQ ENXIO EOF EOPNOTSUPP EOVERFLOW EOWNERDEAD
    EPERM EPFNOSUPPORT EPIPE EPROTO EPROTONOSUPPORT EPROTOTYPE ERANGE EREMCHG EREMOTE EREMOTEIO ERESTART ERFKILL EROFS
    ESHUTDOWN ESOCKTNOSUPPORT ESPIPE ESRCH ESRMNT ESTALE ESTRPIPE ETIME ETIMEDOUT ETOOMANYREFS ETXTBSY EUCLEAN EUNATCH
    EUSERS EWOULDBLOCK EXDEV EXFULL FILE INFINITY INLINE MAXFLOAT MIN_INT_BITS NAN NFDBITS NULL NZERO SNAN SNANF
    SNANF128 SNANF32 SNANF32X SNANF64 SNANF64X SNANL WCONTINUED WEOF WEXITED WEXITSTATUS WIFCONTINUED WIFEXITED
    WIFSIGNALED WIFSTOPPED WNOHANG WNOWAIT WSTOPPED WSTOPSIG WTERMSIG WUNTRACED""".split()
)
#: Types of C headers and vendor headers, and byte order conversions.
_PATTERN = re.compile(r"u?int\d*|\w+_t|(ap|ac|af|pthread)(_\w+)?|(be|le)\d+toh|hto(be|le)\d+", re.ASCII)


def is_reserved(name: str) -> bool:
    """True if C++, the headers, or the file of constants use the name."""
    prefix, underscore, _ = name.partition("_")
    macro = bool(underscore) and prefix in _PREFIXES and (name.isupper() or prefix in ("L", "M"))
    return name in _WORDS | _C | _MACROS or macro or _PATTERN.fullmatch(name) is not None
