// tutti-probe: loads one plugin and says which devices it has, in a process that the plugin may take down.
#include "core/runtime/probe.h"

int main(int argc, char** argv) { return tutti::probe_main(argc, argv); }
