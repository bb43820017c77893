#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace afterglow {

/// What waits for a place, by client. Clients take turns: a place goes to the
/// one that has the fewest running, of these to the one whose last turn is the
/// longest ago; what a client itself sent goes in the order of its coming. So
/// one who sends fifty at once and one who sends a single one both find a
/// place with the next that becomes free, and who is alone gets them all.
/// Thread: one thread.
template <class Item>
class FairQueue {
 public:
  void push(const std::string& client, Item item) {
    clients_[client].items.push_back(std::move(item));
  }

  /// Takes out the next one of which accept(Item&) is true; none: all that
  /// wait have to wait on. running(client) is how many of a client run.
  template <class Running, class Accept>
  std::optional<Item> take(const Running& running, const Accept& accept) {
    forget_absent(running);
    for (auto client : in_turn(running)) {
      std::deque<Item>& items = client->second.items;
      auto found = std::find_if(items.begin(), items.end(), accept);
      if (found == items.end()) {
        continue;
      }
      Item item = std::move(*found);
      items.erase(found);
      client->second.last_turn = ++turns_;
      return item;
    }
    return std::nullopt;
  }

  /// In no particular order.
  template <class Visit>
  void for_each(const Visit& visit) {
    for (auto& [name, client] : clients_) {
      for (Item& item : client.items) {
        visit(item);
      }
    }
  }

  template <class Condition>
  void erase_if(const Condition& condition) {
    for (auto& [name, client] : clients_) {
      std::erase_if(client.items, condition);
    }
  }

 private:
  struct Client {
    std::deque<Item> items;
    std::uint64_t last_turn = 0;
  };
  using Clients = std::map<std::string, Client>;

  /// Of one who has something running it is remembered when his last turn was:
  /// else he could come back first each time that one of his has begun.
  template <class Running>
  void forget_absent(const Running& running) {
    std::erase_if(clients_, [&](const auto& entry) {
      return entry.second.items.empty() && running(entry.first) == 0;
    });
  }

  template <class Running>
  std::vector<typename Clients::iterator> in_turn(const Running& running) {
    struct Place {
      std::size_t running;
      std::uint64_t last_turn;
      typename Clients::iterator client;
    };
    std::vector<Place> places;
    for (auto at = clients_.begin(); at != clients_.end(); ++at) {
      if (!at->second.items.empty()) {
        const auto count = static_cast<std::size_t>(running(at->first));
        places.push_back({count, at->second.last_turn, at});
      }
    }
    std::stable_sort(
        places.begin(),
        places.end(),
        [](const Place& a, const Place& b) {
          return std::pair(a.running, a.last_turn) <
                 std::pair(b.running, b.last_turn);
        }
    );
    std::vector<typename Clients::iterator> order;
    for (const Place& place : places) {
      order.push_back(place.client);
    }
    return order;
  }

  Clients clients_;
  std::uint64_t turns_ = 0;
};

}  // namespace afterglow
