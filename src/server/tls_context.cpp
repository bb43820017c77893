#include "server/tls_context.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <boost/asio/buffer.hpp>
#include <boost/system/error_code.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

namespace afterglow {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using boost::system::error_code;

Error bad_file(const std::string& path, const std::string& why) {
  return {Code::kInvalidArgument, "[serve.tls] " + path + " " + why};
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const bool opened = file.is_open();
  std::string text;
  std::getline(file, text, '\0');  // PEM has none
  if (!opened || file.bad()) {
    return Error{
        Code::kIo,
        "[serve.tls] cannot read " + path + ": " + std::strerror(errno)};
  }
  return text;
}

bool is_mismatch(const error_code& ec) {
  const auto packed = static_cast<unsigned long>(ec.value());
  return ERR_GET_LIB(packed) == ERR_LIB_X509 &&
         ERR_GET_REASON(packed) == X509_R_KEY_VALUES_MISMATCH;
}

}  // namespace

Result<std::shared_ptr<ssl::context>> make_tls_context(
    const std::string& cert_file, const std::string& key_file
) {
  const auto certificate = read_file(cert_file);
  if (!certificate.ok()) return certificate.error();
  const auto key = read_file(key_file);
  if (!key.ok()) return key.error();

  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(native, "ECDHE+AESGCM:ECDHE+CHACHA20");
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // OpenSSL's own buffers go while a connection is idle.
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);

  error_code ec;
  context->use_certificate_chain(asio::buffer(*certificate), ec);
  if (ec)
    return bad_file(
        cert_file, "holds no PEM certificate that serves: " + ec.message()
    );
  // Without this the library would ask at the terminal.
  bool asked = false;
  context->set_password_callback(
      [&asked](std::size_t, ssl::context::password_purpose) {
        asked = true;
        return std::string();
      }
  );
  context->use_private_key(asio::buffer(*key), ssl::context::pem, ec);
  if (asked) {
    return bad_file(
        key_file, "is encrypted; 'openssl pkey' writes it without a passphrase"
    );
  }
  // A key of another kind than the certificate's fits, until it is looked at.
  const bool fits = SSL_CTX_check_private_key(native) == 1;
  ERR_clear_error();
  if (is_mismatch(ec) || (!ec && !fits)) {
    return bad_file(
        key_file, "is not the key of the certificate in " + cert_file
    );
  }
  if (ec)
    return bad_file(key_file, "holds no PEM private key: " + ec.message());
  context->set_password_callback([](std::size_t, ssl::context::password_purpose
                                 ) { return std::string(); });
  return context;
}

}  // namespace afterglow
