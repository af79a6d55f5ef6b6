#include "backends/vulkan/api.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace tutti::vulkan {

Api Api::load() {
  void* loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);  // never closed, like every library of a plugin
  if (!loader) {
    const char* why = dlerror();
    throw Error(Code::declined, fmt::format("the Vulkan loader cannot be opened ({})", why ? why : "libvulkan.so.1"),
                "install the package libvulkan1 and a driver (mesa-vulkan-drivers, or the GPU vendor's)");
  }
  Api api;
  api.GetInstanceProcAddr = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(loader, "vkGetInstanceProcAddr"));
  if (!api.GetInstanceProcAddr)
    throw Error(Code::declined, "libvulkan.so.1 has no vkGetInstanceProcAddr", "install the package libvulkan1 again");
  auto global = [&](const char* name) { return api.GetInstanceProcAddr(nullptr, name); };
  api.CreateInstance = reinterpret_cast<PFN_vkCreateInstance>(global("vkCreateInstance"));
  api.EnumerateInstanceVersion = reinterpret_cast<PFN_vkEnumerateInstanceVersion>(global("vkEnumerateInstanceVersion"));
  api.EnumerateInstanceLayerProperties =
      reinterpret_cast<PFN_vkEnumerateInstanceLayerProperties>(global("vkEnumerateInstanceLayerProperties"));
  uint32_t version = VK_API_VERSION_1_0;
  if (api.EnumerateInstanceVersion) api.EnumerateInstanceVersion(&version);
  if (!api.CreateInstance || !api.EnumerateInstanceLayerProperties || version < VK_API_VERSION_1_2)
    throw Error(Code::declined,
                fmt::format("the Vulkan loader supports version {}.{}, but 1.2 is needed",
                            VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version)),
                "install a newer libvulkan1");
  return api;
}

void Api::take(VkInstance instance) {
  auto get = [&](const char* name) {
    PFN_vkVoidFunction function = GetInstanceProcAddr(instance, name);
    if (!function)
      throw Error(Code::declined, fmt::format("the Vulkan loader has no {}", name), "install a newer libvulkan1");
    return function;
  };
#define TUTTI_VULKAN_TAKE(name) name = reinterpret_cast<PFN_vk##name>(get("vk" #name));
  TUTTI_VULKAN_FUNCTIONS(TUTTI_VULKAN_TAKE)
#undef TUTTI_VULKAN_TAKE
}

std::string result_name(VkResult result) {
  switch (result) {
    case VK_SUCCESS: return "VK_SUCCESS";
    case VK_NOT_READY: return "VK_NOT_READY";
    case VK_TIMEOUT: return "VK_TIMEOUT";
    case VK_ERROR_OUT_OF_HOST_MEMORY: return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED: return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST: return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_MEMORY_MAP_FAILED: return "VK_ERROR_MEMORY_MAP_FAILED";
    case VK_ERROR_LAYER_NOT_PRESENT: return "VK_ERROR_LAYER_NOT_PRESENT";
    case VK_ERROR_EXTENSION_NOT_PRESENT: return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case VK_ERROR_FEATURE_NOT_PRESENT: return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_INCOMPATIBLE_DRIVER: return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_TOO_MANY_OBJECTS: return "VK_ERROR_TOO_MANY_OBJECTS";
    case VK_ERROR_FRAGMENTED_POOL: return "VK_ERROR_FRAGMENTED_POOL";
    case VK_ERROR_OUT_OF_POOL_MEMORY: return "VK_ERROR_OUT_OF_POOL_MEMORY";
    default: return fmt::format("VkResult {}", static_cast<int>(result));
  }
}

void check(VkResult result, const std::string& what) {
  if (result >= 0) return;
  std::string message = fmt::format("vulkan: {}: {}", what, result_name(result));
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: throw Error(Code::no_memory, message);
    case VK_ERROR_DEVICE_LOST:
      throw Error(
          Code::device_lost, message,
          "the session cannot be used any more: open a new one, and see the system log for the driver's messages");
    default: throw Error(Code::internal, message);
  }
}

}  // namespace tutti::vulkan
