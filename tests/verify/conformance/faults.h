// What the mock plugin can be made to do wrong.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tutti::mock {

struct FaultDoc {
  const char* name;
  const char* doc;
};

/// All of them, one line each. TUTTI_MOCK=NAME[:ARGUMENT][,…] turns them on; nothing else is wrong with the plugin.
constexpr FaultDoc all_faults[] = {
    // in a session
    {"decline", "declines the op ARGUMENT"},
    {"wrong_size", "reports 64 bytes of arena less than it allocates"},
    {"large_size", "reports a PiB of arena more than it allocates"},
    {"fail_alloc", "the ARGUMENTth prepare finds no memory"},
    {"fail_run", "the ARGUMENTth run is refused"},
    {"late_error", "the first run fails, which the wait after it says"},
    {"corrupt", "changes one element of a result of the op ARGUMENT"},
    {"sleep", "every run takes ARGUMENT milliseconds: slow, but right"},
    {"hang", "the first run never returns"},
    {"lost", "the device is gone after the first run"},
    {"leak", "release gives nothing back"},
    {"keep_states", "forget frees nothing"},
    {"leak_memory", "release counts memory as given back, but keeps as much"},
    {"nondeterministic", "the last bit of a state differs from session to session"},
    {"shared", "all sessions have one state"},
    {"stale_read", "read gives the state of one run ago"},
    {"stale_feed", "runs read the feeds of the run before"},
    {"null_feed", "stage gives no memory for feeds"},
    {"any_option", "open takes any option"},
    {"any_ticket", "wait takes any ticket"},
    {"any_size", "read and write take any size"},
    {"dirty_state", "new state is not zero"},
    {"bad_product", "products are wrong where ARGUMENT says: row, large, ta, long, both, batch (see bad_product())"},
    {"finite", "NaN and infinity in results become numbers"},
    {"flush", "denormal numbers become 0"},
    {"second", "the results of the second device are wrong"},
    {"patient", "wait takes 300 milliseconds, whatever its time"},
    {"shared_scratch", "sessions that run at a time disturb each other"},
    {"late_free", "what release should give back stays until the session closes"},
    {"lost_write", "a write while runs are in flight is lost"},
    {"abort_oom", "on this CPU, an allocation that fails ends the process"},
    {"crash_op", "running the op ARGUMENT crashes"},
    {"hang_op", "running the op ARGUMENT never returns"},
    {"exit_op", "running the op ARGUMENT ends the process as if all were well"},
    {"sticky", "running the op ARGUMENT fails, and so does every later call of the process"},
    {"devices", "there are ARGUMENT devices"},
    // across the table
    {"crash_init", "init crashes"},
    {"crash_devices", "devices crashes"},
    {"exit_devices", "devices ends the process as if all were well"},
    {"hang_devices", "devices never returns"},
    {"malformed_list", "devices gives elements of 8 bytes"},
    {"crash_open", "open crashes"},
    {"exit_open", "open ends the process as if all were well"},
    {"hang_open", "open never returns"},
    {"crash_run", "run crashes"},
    {"abort", "compile aborts the process"},
    {"exit", "compile ends the process as if all were well"},
    {"crash_end", "the process crashes at its end"},
    {"print", "run prints to stdout"},
    {"print_error", "open prints to stderr"},
    {"throw", "prepare throws an exception"},
    {"init_error", "init fails"},
    {"ignore_required", "takes unknown required bits for known ones"},
    {"refuse_dtype", "a dtype that it does not know makes the whole program invalid"},
    {"ignore_numerics", "takes unknown numerics for known ones"},
    {"fixed_stride", "reads arrays by the size of the elements that it knows"},
    {"small_struct", "reads behind the size of the options"},
    {"large_error", "writes behind the size of the error"},
    {"bad_error", "errors have no message"},
    {"endless_error", "errors' messages are not NUL-ended"},
    {"wrong_code", "errors hold another code than the call returns"},
    {"strange_code", "calls return codes that no header knows"},
    {"no_reason", "check declines without a reason"},
    {"accepts_bad_arguments", "NULLs are accepted and ignored"},
    {"any_device", "open takes any index for device 0"},
    {"no_range", "negotiation does not fill in the plugin's own range"},
    {"any_version", "negotiation gives a table for any version"},
    {"null_function", "the table lacks usage"},
    {"no_device", "there is no device that can be used"},
    {"no_driver", "a device does not say what drives it"},
    {"bad_memory", "a device has ARGUMENT bytes of memory"},
    {"bad_device", "a device has no name and an unknown kind"},
};

/// The faults that TUTTI_MOCK names, read once.
class Faults {
 public:
  static const Faults& get();
  bool on(const std::string& name) const;
  std::string argument(const std::string& name) const;
  uint64_t number(const std::string& name) const;
  /// The first that is in no list, or "".
  const std::string& unknown() const { return unknown_; }

 private:
  Faults();
  std::vector<std::pair<std::string, std::string>> on_;
  std::string unknown_;
};

}  // namespace tutti::mock
