#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

#include "base/result.h"

namespace afterglow {

/// What a TLS server shows and speaks: TLS 1.2 with forward secrecy, or 1.3.
/// cert_file: PEM, the server's certificate first, then those that lead to
/// its root. key_file: PEM, not encrypted.
/// Errors: kIo when a file cannot be read, kInvalidArgument when it holds no
/// such thing, or the key is encrypted or not the certificate's; the message
/// names the file.
Result<std::shared_ptr<boost::asio::ssl::context>> make_tls_context(
    const std::string& cert_file, const std::string& key_file
);

}  // namespace afterglow
