#include "cli/commands.h"

int main(int argc, char** argv) {
  return afterglow::run_command(argc, argv);
}
