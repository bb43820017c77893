#include "server/http_server.h"

#include <spdlog/spdlog.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "server/byte_stream.h"
#include "server/http_connection.h"
#include "server/ip_address.h"
#include "server/log_value.h"
#include "server/tls_context.h"

namespace afterglow {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;

constexpr auto use_result = asio::as_tuple(asio::use_awaitable);
/// Connections above the limit that are told so; those above are closed.
constexpr std::size_t kRefusals = 64;
constexpr int kSendBuffer = 256 << 10;

Error listen_error(const HttpOptions& options, const error_code& ec) {
  const std::string where = options.host + ":" + std::to_string(options.port);
  std::string text =
      "[http.listen] cannot listen on " + where + ": " + ec.message();
  if (ec == asio::error::address_in_use) {
    text += "; choose another port with --port, or 0 for any free one";
  }
  return {Code::kIo, text};
}

bool out_of_descriptors(const error_code& ec) {
  return ec == asio::error::no_descriptors ||
         ec == boost::system::errc::too_many_files_open_in_system;
}

/// What reaches here is of no one connection; the others go on.
void run_to_end(asio::io_context& context) {
  for (;;) {
    try {
      context.run();
      return;
    } catch (const std::exception& thrown) {
      spdlog::error("http error={}", log_value(thrown.what()));
    }
  }
}

}  // namespace

struct HttpServer::Impl {
  Impl(const HttpOptions& options, HttpHandler handler, HttpGate gate)
      : context(options.threads),
        acceptor(asio::make_strand(context)),
        work(context.get_executor()),
        shared(std::make_shared<HttpConnections>(
            std::move(gate),
            std::move(handler),
            options.limits,
            options.responses
        )),
        cert_file(options.ssl_cert_file),
        key_file(options.ssl_key_file) {}

  Status set_up_tls() {
    if (cert_file.empty() && key_file.empty()) return {};
    if (cert_file.empty() || key_file.empty()) {
      return Error{
          Code::kInvalidArgument,
          "[http.listen] TLS needs both --ssl-cert-file and --ssl-key-file"};
    }
    return renew_tls();
  }

  Status renew_tls() {
    auto made = make_tls_context(cert_file, key_file);
    if (!made.ok()) return made.error();
    const std::lock_guard lock(tls_mutex);
    tls = *std::move(made);
    return {};
  }

  std::shared_ptr<asio::ssl::context> current_tls() const {
    const std::lock_guard lock(tls_mutex);
    return tls;
  }

  Status listen(const HttpOptions& options) {
    error_code ec;
    tcp::resolver resolver(context);
    const auto found = resolver.resolve(
        options.host,
        std::to_string(options.port),
        tcp::resolver::passive | tcp::resolver::numeric_service,
        ec
    );
    if (ec || found.empty()) {
      return Error{
          Code::kInvalidArgument,
          "[http.listen] cannot resolve the host '" + options.host +
              "': " + ec.message()};
    }
    const tcp::endpoint endpoint = *found.begin();
    acceptor.open(endpoint.protocol(), ec);
    if (!ec) acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
    if (!ec) acceptor.bind(endpoint, ec);
    if (!ec) acceptor.listen(tcp::acceptor::max_listen_connections, ec);
    if (!ec) acceptor.non_blocking(true, ec);
    if (!ec) bound = acceptor.local_endpoint(ec);
    if (ec) return listen_error(options, ec);
    return {};
  }

  asio::awaitable<void> accept_loop() {
    asio::steady_timer pause(acceptor.get_executor());
    bool failing = false;  // the log need not tell it again
    while (acceptor.is_open()) {
      std::string failure;
      try {
        // Not async_accept, which tries at once: Linux wants a descriptor
        // before it looks whether anyone waits, and somebody would be closed
        // for none.
        auto [ec] =
            co_await acceptor.async_wait(tcp::acceptor::wait_read, use_result);
        if (!acceptor.is_open()) break;
        tcp::socket socket(asio::make_strand(context));
        if (!ec) acceptor.accept(socket, ec);
        if (ec == asio::error::would_block) continue;  // it has gone again
        if (!ec) admit(std::move(socket));
        if (ec) failure = ec.message();
        if (out_of_descriptors(ec)) shared->close_idlest();
      } catch (const std::exception& thrown) {
        failure = thrown.what();
      }
      if (!failure.empty()) {
        if (!failing) {
          spdlog::warn("http accept error={}", log_value(failure));
        }
        // Others need time to give back what is short.
        pause.expires_after(100ms);
        co_await pause.async_wait(use_result);
      }
      failing = !failure.empty();
    }
  }

  void admit(tcp::socket socket) {
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    socket.set_option(
        asio::socket_base::send_buffer_size(kSendBuffer), ignored
    );
    const std::size_t live = shared->count();
    const std::size_t limit = shared->limits.connections;
    if (live >= limit + kRefusals) return;
    const bool room = live < limit || shared->close_idlest();
    auto secure = current_tls();
    auto stream = secure == nullptr
                      ? plain_stream(std::move(socket))
                      : tls_stream(std::move(socket), std::move(secure));
    std::make_shared<HttpConnection>(std::move(stream), shared)->start(!room);
  }

  void close_acceptor() {
    asio::post(acceptor.get_executor(), [this] {
      error_code ignored;
      acceptor.close(ignored);
    });
  }

  asio::io_context context;
  tcp::acceptor acceptor;
  asio::executor_work_guard<asio::io_context::executor_type> work;
  std::shared_ptr<HttpConnections> shared;
  const std::string cert_file;
  const std::string key_file;
  mutable std::mutex tls_mutex;
  std::shared_ptr<asio::ssl::context> tls;  // null: plain HTTP; tls_mutex
  tcp::endpoint bound;
  std::vector<std::thread> threads;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<HttpServer>> HttpServer::start(
    const HttpOptions& options, HttpHandler handler, HttpGate gate
) {
  auto impl =
      std::make_unique<Impl>(options, std::move(handler), std::move(gate));
  if (auto status = impl->set_up_tls(); !status.ok()) {
    return status.error();
  }
  if (auto status = impl->listen(options); !status.ok()) return status.error();
  asio::co_spawn(
      impl->acceptor.get_executor(), impl->accept_loop(), asio::detached
  );
  spdlog::default_logger_raw();  // made before threads race to use it first
  for (int i = 0; i < options.threads; ++i) {
    impl->threads.emplace_back([context = &impl->context] {
      run_to_end(*context);
    });
  }
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::~HttpServer() {
  drain();
  // A connection accepted meanwhile is closed in a later round.
  do {
    for (const auto& connection : impl_->shared->all()) connection->close();
  } while (!wait_drained(std::chrono::steady_clock::now() + 100ms));
  impl_->work.reset();
  for (std::thread& thread : impl_->threads) thread.join();
}

std::uint16_t HttpServer::port() const {
  return impl_->bound.port();
}

std::string HttpServer::url() const {
  const auto address = impl_->bound.address();
  const std::string host =
      address.is_v6() ? "[" + address.to_string() + "]" : address.to_string();
  const std::string scheme =
      impl_->current_tls() == nullptr ? "http://" : "https://";
  return scheme + host + ":" + std::to_string(port());
}

bool HttpServer::on_loopback() const {
  return unmapped(impl_->bound.address()).is_loopback();
}

std::size_t HttpServer::connections() const {
  return impl_->shared->count();
}

Status HttpServer::renew_tls() {
  if (impl_->current_tls() == nullptr) return {};
  return impl_->renew_tls();
}

void HttpServer::drain() {
  impl_->shared->draining = true;
  impl_->close_acceptor();
  for (const auto& connection : impl_->shared->all()) connection->drain();
}

bool HttpServer::wait_drained(std::chrono::steady_clock::time_point deadline) {
  return impl_->shared->wait_none(deadline);
}

void HttpServer::cut(const ApiError& error) {
  for (const auto& connection : impl_->shared->all()) connection->cut(error);
}

}  // namespace afterglow
