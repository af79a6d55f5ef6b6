/* LEAVER_RANK exits with 0 after LEAVER_SECONDS, as a program does that thinks it is done. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void* leave(void* seconds) {
  usleep((unsigned)(1e6 * atof(seconds)));
  _exit(0);
}

__attribute__((constructor)) static void start(void) {
  const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *leaver = getenv("LEAVER_RANK");
  if (!rank) rank = getenv("PMI_RANK"); /* MPICH's */
  pthread_t thread;
  if (rank && leaver && strcmp(rank, leaver) == 0) pthread_create(&thread, NULL, leave, getenv("LEAVER_SECONDS"));
}
