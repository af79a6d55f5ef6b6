// The parts of the page: pieces of well-formed XML.
#pragma once
#include <string>

#include "bench/result.h"

namespace tutti::bench {

/// The colour class of a lane: "l0" … "l7", by its place in the result.
std::string lane_class(const Result& r, const std::string& lane);

/// One case's times as bars with their quartiles: a table, so that it can be read aloud too.
std::string bars(const Result& r, const CaseName& c);
/// A device's peaks in one precision, and where its cases lie below them; "" where it has no such peak.
std::string roofline(const Result& r, const LaneInfo& lane, const std::string& precision);
/// One case's medians over the runs, oldest first; "" where fewer than two have it.
std::string history(const CaseName& c, const std::vector<const Result*>& runs);

}  // namespace tutti::bench
