// tutti-probe: loads one plugin and lists its devices, in a separate process that the plugin may crash.
#include "core/os/this_process.h"
#include "core/runtime/probe.h"

int main(int argc, char** argv) { return tutti::probe_main(tutti::os::arguments(argc, argv)); }
