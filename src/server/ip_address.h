#pragma once

#include <boost/asio/ip/address.hpp>

namespace afterglow {

/// The IPv4 address of one that is mapped into IPv6 (RFC 4291, 2.5.5.2), as a
/// socket for both sees an IPv4 client; any other as it is.
inline boost::asio::ip::address unmapped(const boost::asio::ip::address& address
) {
  namespace ip = boost::asio::ip;
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return ip::make_address_v4(ip::v4_mapped, address.to_v6());
}

}  // namespace afterglow
