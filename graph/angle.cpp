#include "graph/angle.h"

namespace tutti {
namespace {

// atan(u) = u + u z Q(z), z = u^2, for u <= tan(pi/8): Chebyshev interpolation, within 1.4e-16 of the result.
constexpr double Q[] = {0.02275052699336167, -0.04483334622272886, 0.05736332165907643, -0.06649613695291669,
                        0.0769105515839315,  -0.09090852557176049, 0.11111109636534361, -0.1428571426609662,
                        0.19999999999898407, -0.3333333333333325};
constexpr double tan_pi_8 = 0.41421356237309505, tan_3pi_8 = 2.414213562373095;
constexpr double pi_2 = 1.5707963267948966, pi_4 = 0.78539816339744831;

}  // namespace

Ex angle_of(Ex n, Ex d) {
  Ex steep = n > tan_3pi_8 * d, middle = n > tan_pi_8 * d;  // rotated by pi/2, by pi/4
  Ex u = select(steep, -d, select(middle, n - d, n)) / select(steep, n, select(middle, n + d, d));
  Ex z = u * u, q = u.like(Q[0]);
  for (double c : std::span(Q).subspan(1)) q = q * z + c;
  return select(steep, pi_2, select(middle, pi_4, u.like(0))) + (u + u * (z * q));
}

Ex odd(Ex x, Ex y) { return select(x < 0, -y, select(equal(x, 0), x, y)); }

}  // namespace tutti
