// Parts of the page, as well-formed XML.
#pragma once
#include <string>

#include "bench/result.h"

namespace tutti::bench {

/// CSS colour class of a lane: "l0" … "l7", by its index in the result.
std::string lane_class(const Result& r, const std::string& lane);

/// One case's times as bars with quartiles, as a table that screen readers can read.
std::string bars(const Result& r, const CaseName& c);
/// Roofline chart of a device in one precision with its cases; "" if the device has no peak in it.
std::string roofline(const Result& r, const LaneInfo& lane, const std::string& precision);
/// One case's medians over several runs, oldest first; "" if fewer than two runs have the case.
std::string history(const CaseName& c, const std::vector<const Result*>& runs);

}  // namespace tutti::bench
