// correct: monotone functions with evenly spaced thresholds, by a guess that one comparison corrects. No
// multiplication.
//
// Purpose     The high bits of x select its bucket, which has a start and a first code. y = x - start looks the same
//             in all buckets. The high bits of y select its cell, which holds at most one threshold. `level` is that
//             threshold in the low bits.
//             code = code of the bucket + count of the cell + (level reached, or sure)
// Parameters  Y_BITS    Low bits of y that matter.
//             FRACTION  Fraction bits of y.
//             LOW       Code at which the array `rest` begins.
//             FOLDS     Beats after which the functions of the lanes repeat.
//             ROUNDS    Number of such rounds in a frame.
// Tables      shape[N][8], per lane: coarse and fine (the lowest bits of x and of y that belong to a bucket and to a
//             cell); bits of the number of a bucket and of a cell; the first and the last x with a bucket; the count
//             for larger x; 0. start, code[FOLDS][N][buckets]; count, level, sure[FOLDS][N][cells].
//             rest[FOLDS][N][codes]: the low bits of the threshold after a code, in units of x.
// Contract    Exact integers.
#ifndef HG_CORRECT_HPP
#define HG_CORRECT_HPP

#include "types.hpp"

namespace hg {

template <int Y_BITS, int FRACTION, long long LOW, int FOLDS, int ROUNDS, typename X, typename Y, int N, typename D,
          typename S, typename B, typename C, typename L, typename E, typename R, int BUCKETS, int CELLS, int CODES>
void correct(hls::stream<vec<X, N> > &s, hls::stream<vec<Y, N> > &m, const D (&shape)[N][8],
             const S (&start)[FOLDS][N][BUCKETS], const B (&code)[FOLDS][N][BUCKETS],
             const C (&count)[FOLDS][N][CELLS], const L (&level)[FOLDS][N][CELLS],
             const E (&sure)[FOLDS][N][CELLS], const R (&rest)[FOLDS][N][CODES]) {
#pragma HLS ARRAY_PARTITION variable=shape complete dim=0
#pragma HLS ARRAY_PARTITION variable=start complete dim=2
#pragma HLS ARRAY_PARTITION variable=code complete dim=2
#pragma HLS ARRAY_PARTITION variable=count complete dim=2
#pragma HLS ARRAY_PARTITION variable=level complete dim=2
#pragma HLS ARRAY_PARTITION variable=sure complete dim=2
#pragma HLS ARRAY_PARTITION variable=rest complete dim=2
    typedef ap_int<traits<X>::width + 1> number;
    typedef ap_uint<Y_BITS> place;
#pragma hls_pipeline_init_interval 1
    for (int round = 0; round < ROUNDS; round++) {
        for (int fold = 0; fold < FOLDS; fold++) {
#pragma HLS PIPELINE II=1 style=flp
            const vec<X, N> x = s.read();
            vec<Y, N> y;
#pragma hls_unroll yes
            for (int n = 0; n < N; n++) {
#pragma HLS UNROLL
                const int coarse = static_cast<int>(shape[n][0]), bucket_bits = static_cast<int>(shape[n][2]);
                const int size = static_cast<int>(shape[n][1]) + FRACTION, cell_bits = static_cast<int>(shape[n][3]);
                const number first = shape[n][4], last = shape[n][5], all = x[n];
                const bool below = all < first, beyond = all > last;
                const number inside = below ? first : beyond ? last : all;
                const int bucket = static_cast<int>(number(inside >> coarse).to_int64()) & ((1 << bucket_bits) - 1);
                const place from = place(place(all) << FRACTION) - place(start[fold][n][bucket]);
                const int cell = static_cast<int>(place(from >> size).to_int64()) & ((1 << cell_bits) - 1);
                const place within = from - place(place(from >> size) << size);
                const int more = below    ? 0
                                 : beyond ? static_cast<int>(shape[n][6])
                                          : static_cast<int>(count[fold][n][cell]);
                const int guess = static_cast<int>(code[fold][n][bucket]) + more;
                const int entry = guess < LOW ? 0 : guess - LOW > CODES - 1 ? CODES - 1 : static_cast<int>(guess - LOW);
                const place threshold = place(level[fold][n][cell]) + place(place(rest[fold][n][entry]) << FRACTION);
                const bool reached = below || beyond || sure[fold][n][cell] != 0 || within >= threshold;
                y[n] = Y(reached ? guess + 1 : guess);
            }
            m.write(y);
        }
    }
}

}  // namespace hg

#endif
