#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

namespace afterglow::testing {

/// A self-signed certificate of "localhost" and its key, in files that go
/// with it.
class TestCertificate {
 public:
  TestCertificate() {
    std::string name =
        (std::filesystem::temp_directory_path() / "afterglow-tls-XXXXXX")
            .string();
    folder_ = ::mkdtemp(name.data());
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
        EVP_EC_gen("P-256"), EVP_PKEY_free
    );
    const std::unique_ptr<X509, decltype(&X509_free)> x509(
        X509_new(), X509_free
    );
    X509_set_version(x509.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x509.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(x509.get()), -60);
    X509_gmtime_adj(X509_getm_notAfter(x509.get()), 3600);
    X509_set_pubkey(x509.get(), key.get());
    X509_NAME* subject = X509_get_subject_name(x509.get());
    X509_NAME_add_entry_by_txt(
        subject,
        "CN",
        MBSTRING_ASC,
        reinterpret_cast<const unsigned char*>("localhost"),
        -1,
        -1,
        0
    );
    X509_set_issuer_name(x509.get(), subject);
    X509_sign(x509.get(), key.get(), EVP_sha256());
    if (FILE* file = std::fopen(cert_file().c_str(), "w")) {
      PEM_write_X509(file, x509.get());
      std::fclose(file);
    }
    write_key(key_file(), key.get(), nullptr);
    write_key(locked_file(), key.get(), EVP_aes_256_cbc());
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> foreign(
        EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"), EVP_PKEY_free
    );
    write_key(foreign_file(), foreign.get(), nullptr);
  }
  ~TestCertificate() { std::filesystem::remove_all(folder_); }

  std::string cert_file() const { return (folder_ / "cert.pem").string(); }
  std::string key_file() const { return (folder_ / "key.pem").string(); }
  /// The key under a passphrase.
  std::string locked_file() const { return (folder_ / "locked.pem").string(); }
  /// A key of another kind.
  std::string foreign_file() const {
    return (folder_ / "foreign.pem").string();
  }
  std::string folder() const { return folder_.string(); }

 private:
  static void write_key(
      const std::string& path, EVP_PKEY* key, const EVP_CIPHER* cipher
  ) {
    char passphrase[] = "open";
    if (FILE* file = std::fopen(path.c_str(), "w")) {
      PEM_write_PKCS8PrivateKey(
          file,
          key,
          cipher,
          cipher ? passphrase : nullptr,
          cipher ? 4 : 0,
          nullptr,
          nullptr
      );
      std::fclose(file);
    }
  }

  std::filesystem::path folder_;
};

}  // namespace afterglow::testing
