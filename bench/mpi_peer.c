/*
 * mpi_peer: an MPI's allreduce, as a set of bench_allreduce. Started by mpirun with the path of
 * what the set shares; built only where an MPI is installed.
 */
#ifdef HVD_BENCH_MPI
#include "base/mem.h"
#include "bench/allreduce_work.h"

#include <mpi.h>

#include <stdlib.h>

static void allreduce(void *engine, void *numbers, size_t count)
{
    (void)engine;
    if (MPI_Allreduce(MPI_IN_PLACE, numbers, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD))
        exit(1);
}

int main(int argc, char **argv)
{
    struct lockstep_self seat;
    float *numbers;
    int rank, size;

    if (argc != 2 || MPI_Init(&argc, &argv) || MPI_Comm_rank(MPI_COMM_WORLD, &rank) ||
        MPI_Comm_size(MPI_COMM_WORLD, &size))
        return 1;
    lockstep_sit(&seat, argv[1], (uint32_t)rank);
    numbers = mem_zalloc(ALLREDUCE_MAX);
    if (!numbers || seat.size != (uint32_t)size)
        return 1;
    allreduce_work(&seat, allreduce, NULL, numbers);
    mem_free(numbers);
    return MPI_Finalize();
}
#else
int main(void)
{
    return 1;
}
#endif
